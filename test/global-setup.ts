import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('..', import.meta.url));
const GRACE_MS = 5000;
const SHOWN_CHARACTERS = 200;

let temporary = '';
let cgroupsBefore = new Set<string>();

/** Gives the run a temporary directory of its own, so that what it leaves behind can be told from everything else. */
export function setup(): void {
  // Short, because socket paths below it are limited to 108 bytes.
  temporary = mkdtempSync('/tmp/bt-');
  // Tests that act as another user must get to their files, as they would below /tmp.
  chmodSync(temporary, 0o755);
  process.env['TMPDIR'] = temporary;
  process.env['BRIDLE_TEST_RUN'] = temporary;
  cgroupsBefore = new Set(cgroups());
}

/** Fails the run when a mount, a process or a cgroup of it is left, and ends them. */
export async function teardown(): Promise<void> {
  const deadline = Date.now() + GRACE_MS;
  let left = leftovers();
  while (left.length > 0 && Date.now() < deadline) {
    await sleep(100);
    left = leftovers();
  }
  // Marked as started by this run, so they are ours to end.
  for (const pid of processes().filter(isOurs)) kill(pid);
  for (const mount of mounts()) spawnSync('umount', ['--lazy', mount]);
  // Never through a mount: what could not be unmounted keeps its directory.
  if (mounts().length === 0) rmSync(temporary, { recursive: true, force: true });
  if (left.length === 0) return;
  // The runner prints an error of a teardown, but ends with 0 all the same.
  process.exitCode = 1;
  throw new Error(`the tests left something behind:\n  ${left.join('\n  ')}`);
}

function leftovers(): string[] {
  return [
    ...mounts().map((mount) => `mount ${mount}`),
    ...processes().map((pid) => `process ${pid}: ${commandLine(pid).slice(0, SHOWN_CHARACTERS)}`),
    ...cgroups()
      .filter((path) => !cgroupsBefore.has(path) && !isPopulated(path))
      .map((path) => `cgroup ${path}`),
  ];
}

function mounts(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replace(/\\040/g, ' '))
    .filter((path) => path.startsWith(`${temporary}/`));
}

/** Processes with our temporary directory in their environment, command line or working directory; not the runner. */
function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => !isRunner(pid) && (isOurs(pid) || isOrphanSupervisor(pid)));
}

function isRunner(pid: number): boolean {
  return pid === process.pid || parentOf(pid) === process.pid || commandLine(pid).includes('vitest');
}

function isOurs(pid: number): boolean {
  const marks = [readProc(pid, 'environ'), readProc(pid, 'cmdline'), linkOf(pid, 'cwd')];
  return marks.some((mark) => mark.includes(`${temporary}/`) || mark.includes(`BRIDLE_TEST_RUN=${temporary}`));
}

/** A supervisor has a closed environment; one of this build whose daemon is gone must be gone too. */
function isOrphanSupervisor(pid: number): boolean {
  const program = linkOf(pid, 'exe');
  return program.startsWith(project) && program.includes('bridle-supervisor') && parentOf(pid) === 1;
}

function cgroups(root = '/sys/fs/cgroup'): string[] {
  return subdirectories(root).flatMap((name) => {
    const path = `${root}/${name}`;
    const below = cgroups(path);
    return /^bridle[-.]/.test(name) && existsSync(`${path}/cgroup.procs`) ? [...below, path] : below;
  });
}

/** None when the directory is gone: cgroups come and go while we look. */
function subdirectories(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** A populated one belongs to something that lives: if that is ours, it is reported as a process. */
const isPopulated = (path: string): boolean => /^populated 1$/m.test(readText(`${path}/cgroup.events`));

const parentOf = (pid: number): number => Number(/^PPid:\s+(\d+)$/m.exec(readProc(pid, 'status'))?.[1] ?? -1);

const commandLine = (pid: number): string => readProc(pid, 'cmdline').replaceAll('\0', ' ').trim();

const readProc = (pid: number, name: string): string => readText(`/proc/${pid}/${name}`);

/** Empty when what it belongs to is gone or not ours to look at. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Its last parent may have ended it in the meantime. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function linkOf(pid: number, name: string): string {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return '';
  }
}
