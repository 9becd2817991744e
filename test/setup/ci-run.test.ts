import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, it } from 'vitest';
import { project } from './project-copy.js';
import { runProgram } from './run-program.js';

interface Command {
  readonly exit: number;
  readonly tests?: Record<string, 'passed' | 'failed' | 'skipped'>;
  readonly broken?: boolean;
}

/** Runs .ci/run with an `npm` in place of the real one, which leaves the given results. */
async function ciRun(test: Command, full: Command, checks: Record<string, boolean>) {
  const folder = mkdtempSync(join(tmpdir(), 'ci-'));
  for (const part of ['.ci', 'scripts', 'package.json']) {
    cpSync(join(project, part), join(folder, part), { recursive: true });
  }
  const evidence = join(folder, 'build/evidence');
  const prepared = join(folder, 'prepared');
  mkdirSync(evidence, { recursive: true });
  mkdirSync(prepared);
  const outcomes = Object.entries(checks).map(([name, passed]) => ({ name, passed }));
  if (outcomes.length > 0) writeFileSync(join(prepared, 'checks.json'), JSON.stringify(outcomes));
  for (const [name, command] of Object.entries({ vitest: test, 'vitest-full': full })) {
    if (command.tests !== undefined) writeFileSync(join(prepared, `${name}.json`), JSON.stringify(reportOf(command)));
  }
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const npm = `#!/bin/sh
    echo "$*" >> ${folder}/calls
    case "$*" in
      test) cp ${prepared}/checks.json ${prepared}/vitest.json ${evidence} 2>/dev/null; exit ${test.exit} ;;
      *) cp ${prepared}/vitest-full.json ${evidence} 2>/dev/null; exit ${full.exit} ;;
    esac`;
  writeFileSync(join(bin, 'npm'), npm, { mode: 0o755 });
  const env: NodeJS.ProcessEnv = { ...process.env, PATH: `${bin}${delimiter}${process.env['PATH']}` };
  delete env['BRIDLE_EVIDENCE_DIR'];
  const outcome = await runProgram(join(folder, '.ci/run'), [], { env });
  return {
    code: outcome.code,
    last: outcome.stdout.trimEnd().split('\n').at(-1),
    calls: readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n'),
  };
}

function reportOf({ tests = {}, broken = false }: Command) {
  const assertionResults = Object.entries(tests).map(([fullName, status]) => ({ fullName, status, duration: 1 }));
  const failed = assertionResults.some(({ status }) => status === 'failed');
  const good = { name: '/x/a.test.ts', status: failed ? 'failed' : 'passed', assertionResults };
  const bad = { name: '/x/b.test.ts', status: 'failed', assertionResults: [] };
  return { success: !failed && !broken, testResults: broken ? [good, bad] : [good] };
}

const passing = { exit: 0, tests: { one: 'passed', two: 'passed' } } as const;
const failing = { exit: 1, tests: { one: 'passed', two: 'failed' } } as const;
const calls = ['test', 'run test:full'];

it('SU-38 sums tests and checks of both commands', async () => {
  expect(await ciRun(passing, passing, { biome: true, types: true })).toEqual({
    code: 0,
    last: '6 passed, 0 failed',
    calls,
  });
});

it('SU-38 runs the second command when the first failed, and fails', async () => {
  expect(await ciRun(failing, passing, { biome: false })).toEqual({ code: 1, last: '3 passed, 2 failed', calls });
  expect(await ciRun(passing, failing, { biome: true })).toEqual({ code: 1, last: '4 passed, 1 failed', calls });
});

it('SU-38 counts a command that failed although its tests passed, and one that ran nothing', async () => {
  expect(await ciRun({ ...passing, exit: 1 }, passing, {})).toMatchObject({ code: 1, last: '4 passed, 1 failed' });
  expect(await ciRun({ exit: 1 }, { exit: 0 }, {})).toMatchObject({ code: 1, last: '0 passed, 2 failed' });
  expect(await ciRun({ ...passing, broken: true, exit: 1 }, passing, {})).toMatchObject({
    code: 1,
    last: '4 passed, 1 failed',
  });
});
