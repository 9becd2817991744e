#!/usr/bin/env node
/**
 * Every static check, each without a single warning. Leaves the outcomes in checks.json of the evidence folder and all
 * output in a log beside it.
 *
 * usage: node scripts/check.mjs [NAME...]     default: all; expects that set-up has run
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checks } from './check/checks.mjs';
import { say, seconds } from './lib/progress.mjs';
import { evidenceDir } from './lib/project.mjs';

const names = process.argv.slice(2);
const unknown = names.filter((name) => !checks.some((check) => check.name === name));
if (unknown.length > 0) {
  process.stderr.write(
    `unknown check ${unknown.join(', ')}; there are: ${checks.map(({ name }) => name).join(', ')}\n`,
  );
  process.exit(2);
}

mkdirSync(evidenceDir, { recursive: true });
const waiting = checks.filter((check) => names.length === 0 || names.includes(check.name));

/** @type {{ name: string, passed: boolean, milliseconds: number, log: string }[]} */
const outcomes = [];

async function worker() {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    const begin = performance.now();
    const { code, output } = await check
      .run()
      .catch((/** @type {Error} */ error) => ({ code: 1, output: error.message }));
    const milliseconds = Math.round(performance.now() - begin);
    const log = join(evidenceDir, `check-${check.name}.log`);
    writeFileSync(log, output);
    outcomes.push({ name: check.name, passed: code === 0, milliseconds, log });
    say(`check ${check.name}: ${code === 0 ? 'passed' : 'FAILED'} in ${seconds(milliseconds)}`);
    if (code !== 0) process.stderr.write(`${output}\n`);
  }
}

// Two at a time: some use all cores by themselves.
await Promise.all([worker(), worker()]);
outcomes.sort((a, b) => a.name.localeCompare(b.name));
writeFileSync(join(evidenceDir, 'checks.json'), `${JSON.stringify(outcomes, undefined, 2)}\n`);
const failed = outcomes.filter((outcome) => !outcome.passed);
say(`checks: ${outcomes.length - failed.length} passed, ${failed.length} failed`);
process.exitCode = failed.length === 0 ? 0 : 1;
