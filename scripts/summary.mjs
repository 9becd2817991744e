#!/usr/bin/env node
/**
 * The last line of a CI run, `N passed, N failed`, from the files that both test commands leave.
 *
 * usage: node scripts/summary.mjs EXIT_CODE_OF_TEST EXIT_CODE_OF_TEST_FULL
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResults } from './evaluate/results.mjs';
import { evidenceDir } from './lib/project.mjs';

const [testCode, fullCode] = process.argv.slice(2).map(Number);
let passed = 0;
let failed = 0;

const checksFile = join(evidenceDir, 'checks.json');
/** @type {{ name: string, passed: boolean }[]} */
const checks = existsSync(checksFile) ? JSON.parse(readFileSync(checksFile, 'utf8')) : [];
const sets = [
  { name: 'npm test', code: testCode, results: readResults(join(evidenceDir, 'vitest.json'), 'default'), checks },
  {
    name: 'npm run test:full',
    code: fullCode,
    results: readResults(join(evidenceDir, 'vitest-full.json'), 'full'),
    checks: [],
  },
];

for (const { name, code, results, checks: own } of sets) {
  const outcomes = [
    ...own.map((check) => ({ title: `check ${check.name}`, status: check.passed ? 'passed' : 'failed' })),
    ...(results?.tests ?? []).filter(({ status }) => status !== 'skipped'),
    ...(results?.broken ?? []).map((file) => ({ title: `${file} (outside of its tests)`, status: 'failed' })),
  ];
  const bad = outcomes.filter(({ status }) => status === 'failed');
  passed += outcomes.length - bad.length;
  failed += bad.length;
  for (const { title } of bad) console.log(`failed: ${title}`);
  // A command that failed although each of its tests passed (set-up, leftovers, evaluation), or that ran nothing.
  if (bad.length === 0 && (code !== 0 || results === undefined || results.tests.length === 0)) {
    failed += 1;
    console.log(`failed: ${name} ended with exit code ${code}`);
  }
}

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
