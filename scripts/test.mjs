#!/usr/bin/env node
/**
 * `npm test`: set-up, static checks, the default tests, evaluation. A failed part does not hide the outcome of the next;
 * only a failed set-up ends it at once.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { say, seconds } from './lib/progress.mjs';
import { evidenceDir, inRoot } from './lib/project.mjs';
import { run } from './lib/run.mjs';
import { runTests } from './lib/vitest.mjs';

/** @param {string} name @param {...string} args */
const script = async (name, ...args) =>
  (await run(process.execPath, [inRoot('scripts', name), ...args], { show: true })).code;

const begin = performance.now();
for (const name of ['checks.json', 'evidence.json']) rmSync(join(evidenceDir, name), { force: true });

if ((await script('setup.mjs', '--checks')) !== 0) process.exit(1);
const parts = {
  checks: await script('check.mjs'),
  tests: await runTests('default'),
  evaluation: await script('evaluate.mjs'),
};
const failed = Object.entries(parts).filter(([, code]) => code !== 0);
const verdict = failed.length === 0 ? 'passed' : `FAILED: ${failed.map(([name]) => name).join(', ')}`;
say(`npm test ${verdict} in ${seconds(performance.now() - begin)}`);
process.exitCode = failed.length === 0 ? 0 : 1;
