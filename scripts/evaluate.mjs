#!/usr/bin/env node
/**
 * Holds the requirements of spec/ against the results of the last test run; writes evidence.json and evidence.md; exit
 * code 1 when any requirement is unproven or any test failed, was skipped or names an id that no specification has.
 *
 * usage: npm run evaluate [-- --out DIR]
 *
 * `npm test` and `npm run test:full` leave the results (vitest.json, vitest-full.json and a description of the run) in
 * build/evidence; `--results DIR`, `--spec DIR` and `--tests DIR` name other places.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { describeEnvironment, treeFingerprint } from './evaluate/environment.mjs';
import { judge } from './evaluate/judge.mjs';
import { toMarkdown } from './evaluate/report.mjs';
import { idsInSources, readRequirements } from './evaluate/requirements.mjs';
import { readResults } from './evaluate/results.mjs';
import { evidenceDir, inRoot, root } from './lib/project.mjs';

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    results: { type: 'string', default: evidenceDir },
    spec: { type: 'string', default: inRoot('spec') },
    tests: { type: 'string', default: inRoot('test') },
  },
});
const out = values.out ?? values.results;

const tree = treeFingerprint();
const run = readRun('run.json');
const fullRun = readRun('run-full.json');
// Full results of another tree are old, not wrong: the full tests run on their own.
const fullCurrent = fullRun !== undefined && fullRun.tree === tree;

const results = readResults(join(values.results, 'vitest.json'), 'default');
const fullResults = fullCurrent ? readResults(join(values.results, 'vitest-full.json'), 'full') : undefined;
const skipList = join(values.tests, 'allowed-skips.json');
const { rows, problems } = judge({
  requirements: readRequirements(values.spec),
  results,
  fullResults,
  fullSources: idsInSources(join(values.tests, 'full')),
  allowedSkips: existsSync(skipList) ? JSON.parse(readFileSync(skipList, 'utf8')) : [],
});
if (results !== undefined && run === undefined)
  problems.push('the results do not say which run made them: run npm test');
if (run !== undefined && run.tree !== tree) problems.push('the results are of another tree: run npm test again');
for (const [name, made] of Object.entries({
  'npm test': run,
  'npm run test:full': fullCurrent ? fullRun : undefined,
})) {
  if (made !== undefined && made.exitCode !== 0)
    problems.push(`the test runner of ${name} ended with ${made.exitCode}`);
}

const tests = [...(results?.tests ?? []), ...(fullResults?.tests ?? [])];
/** @param {string} status */
const count = (status) => tests.filter((test) => test.status === status).length;
/** @param {string} verdict */
const countRows = (verdict) => rows.filter((row) => row.verdict === verdict).length;

/** @type {import('./evaluate/report.mjs').Report} */
const report = {
  green: problems.length === 0,
  made: new Date().toISOString(),
  environment: await describeEnvironment(),
  counts: {
    requirements: rows.length,
    proven: countRows('proven'),
    full: countRows('full'),
    red: countRows('red'),
    tests: tests.length,
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped'),
  },
  problems,
  requirements: rows,
  logs: existsSync(values.results)
    ? readdirSync(values.results)
        .filter((name) => /\.(log|json)$/.test(name) && name !== 'evidence.json')
        .map((name) => relative(root, join(values.results, name)))
    : [],
};

mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'evidence.json'), `${JSON.stringify(report, undefined, 2)}\n`);
writeFileSync(join(out, 'evidence.md'), toMarkdown(report));
for (const problem of problems) process.stderr.write(`evaluate: ${problem}\n`);
process.stderr.write(
  `evaluate: ${report.green ? 'green' : 'RED'}: ${rows.length} requirements, ${report.counts.proven} proven, ` +
    `${report.counts.full} left to the full tests, ${report.counts.red} red; see ${join(out, 'evidence.md')}\n`,
);
process.exitCode = report.green ? 0 : 1;

/**
 * @param {string} name
 * @returns {{ tree: string, exitCode: number } | undefined}
 */
function readRun(name) {
  const file = join(values.results, name);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
