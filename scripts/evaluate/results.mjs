import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from '../lib/project.mjs';

/**
 * @typedef {object} TestOutcome
 * @property {string} title with the titles of the groups it stands in
 * @property {string} file relative to the root
 * @property {'passed' | 'failed' | 'skipped'} status
 * @property {number} milliseconds
 * @property {'default' | 'full'} set
 */

/**
 * @typedef {object} Results
 * @property {TestOutcome[]} tests
 * @property {string[]} broken files that failed without a test of theirs failing: they did not load, or a hook failed
 * @property {boolean} success what the runner itself said
 */

/**
 * Reads what vitest's JSON reporter wrote.
 * @param {string} file
 * @param {'default' | 'full'} set
 * @returns {Results | undefined} undefined when there is no such file
 */
export function readResults(file, set) {
  if (!existsSync(file)) return undefined;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  /** @type {TestOutcome[]} */
  const tests = [];
  /** @type {string[]} */
  const broken = [];
  for (const suite of report.testResults) {
    const name = relative(root, suite.name);
    for (const test of suite.assertionResults) {
      tests.push({
        title: test.fullName.trim(),
        file: name,
        status: statusOf(test.status),
        milliseconds: Math.round(test.duration ?? 0),
        set,
      });
    }
    const own = suite.assertionResults.some((/** @type {{ status: string }} */ test) => test.status === 'failed');
    if (suite.status === 'failed' && !own) broken.push(name);
  }
  return { tests, broken, success: report.success === true };
}

/** @param {string} status vitest's word; everything that did not run counts as skipped */
function statusOf(status) {
  return status === 'passed' || status === 'failed' ? status : 'skipped';
}
