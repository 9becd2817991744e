import { idsIn } from './requirements.mjs';

/**
 * @typedef {import('./requirements.mjs').Requirement} Requirement
 * @typedef {import('./results.mjs').Results} Results
 * @typedef {import('./results.mjs').TestOutcome} TestOutcome
 * @typedef {{ test: string, reason: string }} AllowedSkip
 * @typedef {'proven' | 'full' | 'red'} Verdict `full`: named by a full test that this run did not execute
 * @typedef {Requirement & { verdict: Verdict, tests: TestOutcome[] }} Row
 */

/**
 * @typedef {object} Evidence
 * @property {readonly Requirement[]} requirements
 * @property {Results | undefined} results of the default set
 * @property {Results | undefined} fullResults
 * @property {ReadonlyMap<string, readonly string[]>} fullSources ids named in the sources of the full tests
 * @property {readonly AllowedSkip[]} allowedSkips
 */

/**
 * Holds requirements against test outcomes. Any problem makes the evaluation red.
 * @param {Evidence} evidence
 * @returns {{ rows: Row[], problems: string[] }}
 */
export function judge(evidence) {
  const { requirements, results, fullResults, fullSources, allowedSkips } = evidence;
  const tests = [...(results?.tests ?? []), ...(fullResults?.tests ?? [])];
  const allowed = new Set(allowedSkips.map(({ test }) => test));
  const known = new Set(requirements.map(({ id }) => id));
  /** @type {string[]} */
  const problems = [];

  if (results === undefined) problems.push('there are no test results: run npm test first');
  if (requirements.length === 0) problems.push('there are no requirements');
  problems.push(...duplicates(requirements));
  for (const set of [results, fullResults]) {
    problems.push(...(set?.broken ?? []).map((file) => `${file}: failed outside of its tests`));
  }

  for (const test of tests) {
    const name = `${test.file}: "${test.title}"`;
    if (test.status === 'failed') problems.push(`${name} failed`);
    if (test.status === 'skipped' && !allowed.has(test.title)) {
      problems.push(`${name} was skipped and is not in test/allowed-skips.json`);
    }
    problems.push(
      ...unknownIds(idsIn(test.title), known).map((id) => `${name} names ${id}, which no specification has`),
    );
  }
  for (const [id, files] of fullSources) {
    if (!known.has(id)) problems.push(`test/full/${files.join(', ')} names ${id}, which no specification has`);
  }
  for (const { test, reason } of allowedSkips) {
    if (reason.trim() === '') problems.push(`allowed skip "${test}" gives no reason`);
    if (results !== undefined && !tests.some(({ title, status }) => title === test && status === 'skipped')) {
      const mayBeFull = fullResults === undefined && idsIn(test).some((id) => fullSources.has(id));
      if (!mayBeFull) problems.push(`allowed skip "${test}" is not skipped, or there is no such test`);
    }
  }

  const rows = requirements.map((requirement) => {
    const own = tests.filter((test) => idsIn(test.title).includes(requirement.id));
    const fault = faultOf(requirement, own, evidence);
    if (fault !== undefined) problems.push(`${requirement.id} (${requirement.file}:${requirement.line}) ${fault}`);
    return { ...requirement, tests: own, verdict: verdictOf(fault, own) };
  });
  return { rows, problems: [...new Set(problems)] };
}

/** @param {string | undefined} fault @param {readonly TestOutcome[]} own @returns {Verdict} */
function verdictOf(fault, own) {
  if (fault !== undefined) return 'red';
  return own.length === 0 ? 'full' : 'proven';
}

/**
 * @param {Requirement} requirement
 * @param {readonly TestOutcome[]} own its tests
 * @param {Evidence} evidence
 * @returns {string | undefined} why it is not proven
 */
function faultOf(requirement, own, { fullResults, fullSources }) {
  if (own.some(({ status }) => status === 'failed')) return 'has a failed test';
  if (own.some(({ status }) => status === 'passed')) return undefined;
  if (own.length > 0) return 'has only skipped tests';
  if (!requirement.full) return 'has no test';
  if (!fullSources.has(requirement.id)) return 'is marked (full), but no full test names it';
  return fullResults === undefined ? undefined : 'is marked (full), but its full test did not run';
}

/** @param {readonly Requirement[]} requirements */
function duplicates(requirements) {
  /** @type {Map<string, Requirement>} */
  const first = new Map();
  return requirements.flatMap((requirement) => {
    const earlier = first.get(requirement.id);
    if (earlier === undefined) {
      first.set(requirement.id, requirement);
      return [];
    }
    const places = `${earlier.file}:${earlier.line} and ${requirement.file}:${requirement.line}`;
    return [`${requirement.id} is there twice: ${places}`];
  });
}

/** @param {readonly string[]} ids @param {ReadonlySet<string>} known */
const unknownIds = (ids, known) => ids.filter((id) => !known.has(id));
