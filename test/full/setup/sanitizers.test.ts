import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { machine } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { project } from '../../setup/project-copy.js';
import { type ProgramOutcome, runProgram } from '../../setup/run-program.js';

const DEADLINE_MS = 2_400_000;
/** For one test, which the sanitizers make slower many times. */
const TEST_DEADLINE_MS = 600_000;

const vitest = join(project, 'node_modules/vitest/vitest.mjs');

async function build(sanitizers: string, folder: string): Promise<void> {
  const flags = ['-DCMAKE_BUILD_TYPE=Debug', `-DBRIDLE_SANITIZE=${sanitizers}`];
  for (const args of [
    ['-S', project, '-B', folder, ...flags],
    ['--build', folder, '--parallel', '2'],
  ]) {
    const outcome = await runProgram('cmake', args);
    expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  }
}

/** Runs the native tests of the default set against the build in `folder`, the sanitizer's library loaded first. */
async function runNativeTests(folder: string, library: string, env: NodeJS.ProcessEnv): Promise<ProgramOutcome> {
  // The static rule has no native part.
  const exclude = '--exclude=test/lifecycle/structure.test.ts';
  const options = ['--project=default', `--testTimeout=${TEST_DEADLINE_MS}`, exclude];
  const tests = [vitest, 'run', ...options, 'test/native-fuse', 'test/lifecycle'];
  return runPreloaded(library, tests, { ...env, BRIDLE_NATIVE_DIR: join(folder, 'Debug') });
}

/** Runs Node.js with the library of a sanitizer loaded first. */
async function runPreloaded(library: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<ProgramOutcome> {
  const { stdout } = await runProgram('g++', [`-print-file-name=${library}`]);
  // Without randomised addresses, which older runtimes of ThreadSanitizer cannot place their shadow memory in.
  return runProgram('setarch', ['--addr-no-randomize', machine(), process.execPath, ...args], {
    cwd: project,
    env: { ...process.env, ...env, LD_PRELOAD: stdout.trim() },
  });
}

/**
 * Races that are none: the runtime does not see openat(2), so that a descriptor number that was closed by one thread and
 * given out again to another looks like one object to it.
 */
const DESCRIPTOR_NUMBER = /Location is file descriptor/;

/** Reports that name code of ours; those about Node.js alone are not our business. */
function reports(logs: string): string[] {
  return readdirSync(logs)
    .map((file) => readFileSync(join(logs, file), 'utf8'))
    .flatMap((text) => text.split(/^={18}$/m))
    .filter((report) => /bridle|native\//.test(report));
}

function emptyFolder(name: string): string {
  const folder = join(project, 'build/full', name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o777 });
  return folder;
}

it('SU-16 with AddressSanitizer and UndefinedBehaviorSanitizer', { timeout: DEADLINE_MS }, async () => {
  const folder = join(project, 'build/sanitize-address');
  await build('address,undefined', folder);
  const logs = emptyFolder('asan-logs');
  const outcome = await runNativeTests(folder, 'libasan.so', {
    // The shell programs that the tests start are leaky and none of ours.
    ASAN_OPTIONS: `detect_leaks=0:log_path=${logs}/report:detect_stack_use_after_return=1`,
    UBSAN_OPTIONS: `print_stacktrace=1:halt_on_error=1:log_path=${logs}/report`,
  });
  expect(reports(logs)).toEqual([]);
  expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
});

it('SU-16 with ThreadSanitizer', { timeout: DEADLINE_MS }, async () => {
  const folder = join(project, 'build/sanitize-thread');
  await build('thread', folder);
  const logs = emptyFolder('tsan-logs');
  const stress = join(import.meta.dirname, 'stress.mjs');
  const outcome = await runPreloaded('libtsan.so', [stress, join(folder, 'Debug'), emptyFolder('stress'), '60'], {
    TSAN_OPTIONS: `exitcode=0:log_path=${logs}/report:second_deadlock_stack=1`,
  });
  expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(outcome.stdout)).toMatchObject({ codes: [0, 0, 0, 0] });
  expect(reports(logs).filter((report) => !DESCRIPTOR_NUMBER.test(report))).toEqual([]);
});
