import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { machine } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { project } from '../../setup/project-copy.js';
import { type ProgramOutcome, runProgram } from '../../setup/run-program.js';

const DEADLINE_MS = 2_400_000;
/** For one test, which the sanitizers make slower many times. */
const TEST_DEADLINE_MS = 600_000;

const vitest = join(project, 'node_modules/vitest/vitest.mjs');

/** @returns where the supervisors of the build put their reports */
async function build(sanitizers: string, folder: string): Promise<string> {
  const flags = ['-DCMAKE_BUILD_TYPE=Debug', `-DBRIDLE_SANITIZE=${sanitizers}`];
  for (const args of [
    ['-S', project, '-B', folder, ...flags],
    ['--build', folder, '--parallel', '2'],
  ]) {
    const outcome = await runProgram('cmake', args);
    expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  }
  return emptyFolder(join(folder, 'logs'));
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

const DESCRIPTOR_MAKERS = new Set(['open64', 'openat64', 'pipe2', 'socketpair', 'eventfd', 'epoll_create1', 'accept4']);

/**
 * Races that are none: the runtime sees neither openat(2) nor libuv's close(2), so that a descriptor number that was
 * closed by one thread and given out again to another looks like one object to it. Making a descriptor touches nothing
 * else that it watches.
 */
function isAboutDescriptorNumber(report: string): boolean {
  if (report.includes('Location is file descriptor')) return true;
  const accesses = [...report.matchAll(/^ *#0 (\S+)/gm)].slice(0, 2);
  return accesses.length === 2 && accesses.every(([, name = '']) => DESCRIPTOR_MAKERS.has(name));
}

const RUNTIME = /\((?:libtsan|libstdc\+\+|libc)\.so/;

/**
 * Races of Node.js with itself, which happen below code of ours: the first frame of both accesses that is not the
 * runtime's belongs to node.
 */
function isRaceOfNode(report: string): boolean {
  if (!report.includes('WARNING: ThreadSanitizer: data race')) return false;
  const accesses = report.split(/^ *#0 /m).slice(1, 3);
  const first = accesses.map((stack) => stack.split(/^ *#\d+ /m).find((frame) => !RUNTIME.test(frame)) ?? '');
  return first.length === 2 && first.every((frame) => /\(node\+/.test(frame));
}

/** Reports that name code of ours; those about Node.js alone are not our business. */
function reports(logs: string): string[] {
  return readdirSync(logs)
    .map((file) => readFileSync(join(logs, file), 'utf8'))
    .flatMap((text) => text.split(/^={18}$/m))
    .filter((report) => /bridle|native\//.test(report));
}

function emptyFolder(folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o777 });
  return folder;
}

const folders = {
  address: join(project, 'build/sanitize-address'),
  thread: join(project, 'build/sanitize-thread'),
};
const scratch = (name: string): string => emptyFolder(join(project, 'build/full', name));

/** Serves a mount under load. @returns the reports */
async function stressMount(folder: string, library: string, env: (logs: string) => NodeJS.ProcessEnv) {
  const logs = scratch('mount-logs');
  const stress = join(import.meta.dirname, 'stress.mjs');
  const outcome = await runPreloaded(library, [stress, join(folder, 'Debug'), scratch('stress'), '60'], env(logs));
  expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(outcome.stdout)).toMatchObject({ codes: [0, 0, 0, 0] });
  return reports(logs);
}

/** Starts and ends processes. @returns the reports */
async function stressProcesses(folder: string, library: string, env: (logs: string) => NodeJS.ProcessEnv) {
  const logs = scratch('process-logs');
  const stress = join(import.meta.dirname, 'process-stress.mjs');
  const native = { BRIDLE_NATIVE_DIR: join(folder, 'Debug') };
  const outcome = await runPreloaded(library, [stress, scratch('processes'), '300'], { ...env(logs), ...native });
  expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  const result = JSON.parse(outcome.stdout) as Record<'started' | 'failed' | 'killed', number>;
  expect(result).toMatchObject({ records: 0, codes: [0, 0] });
  // Every way was gone.
  for (const count of [result.started, result.failed, result.killed]) expect(count).toBeGreaterThan(0);
  return reports(logs);
}

describe('with AddressSanitizer and UndefinedBehaviorSanitizer', () => {
  let ofSupervisors = '';
  beforeAll(async () => {
    ofSupervisors = await build('address,undefined', folders.address);
  }, DEADLINE_MS);

  it('SU-16 the native tests pass', { timeout: DEADLINE_MS }, async () => {
    const logs = scratch('asan-logs');
    const outcome = await runNativeTests(folders.address, 'libasan.so', {
      // The programs that the tests start are leaky and none of ours.
      ASAN_OPTIONS: `detect_leaks=0:log_path=${logs}/report:detect_stack_use_after_return=1`,
      UBSAN_OPTIONS: `print_stacktrace=1:halt_on_error=1:log_path=${logs}/report`,
    });
    expect([...reports(logs), ...reports(ofSupervisors)]).toEqual([]);
    expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  });

  const leaks = (logs: string) => ({ ASAN_OPTIONS: `detect_leaks=1:exitcode=0:log_path=${logs}/report` });

  it('SU-17 a mount under load leaks no memory', { timeout: DEADLINE_MS }, async () => {
    expect(await stressMount(folders.address, 'libasan.so', leaks)).toEqual([]);
  });

  it('SU-17 starts and ends of processes leak no memory', { timeout: DEADLINE_MS }, async () => {
    expect(await stressProcesses(folders.address, 'libasan.so', leaks)).toEqual([]);
    expect(reports(ofSupervisors)).toEqual([]);
  });
});

describe('with ThreadSanitizer', () => {
  let ofSupervisors = '';
  beforeAll(async () => {
    ofSupervisors = await build('thread', folders.thread);
  }, DEADLINE_MS);

  const races = (logs: string) => ({
    TSAN_OPTIONS: `exitcode=0:log_path=${logs}/report:second_deadlock_stack=1`,
  });

  it('SU-18 a mount under load has no race', { timeout: DEADLINE_MS }, async () => {
    const found = await stressMount(folders.thread, 'libtsan.so', races);
    expect(found.filter((report) => !isAboutDescriptorNumber(report) && !isRaceOfNode(report))).toEqual([]);
  });

  it('SU-18 starts and ends of processes have no race', { timeout: DEADLINE_MS }, async () => {
    const found = await stressProcesses(folders.thread, 'libtsan.so', races);
    expect(found.filter((report) => !isAboutDescriptorNumber(report) && !isRaceOfNode(report))).toEqual([]);
    expect(reports(ofSupervisors)).toEqual([]);
  });
});
