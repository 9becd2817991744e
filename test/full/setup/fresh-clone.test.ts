import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { project } from '../../setup/project-copy.js';
import { type ProgramOutcome, runProgram } from '../../setup/run-program.js';

const USER = 'nobody';
const DEADLINE_MS = 600_000;

/** A machine user's folders, all empty and in one place, so that anything left outside of the clone is seen. */
const folders = { HOME: 'home', XDG_RUNTIME_DIR: 'run', TMPDIR: 'tmp', npm_config_cache: 'npm-cache' };

let root = '';
let clone = '';

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'fresh-'));
  clone = join(root, 'clone');
  chmodSync(root, 0o755);
  for (const folder of Object.values(folders)) mkdirSync(join(root, folder), { mode: 0o700 });
  const outcome = await runProgram('git', ['clone', '--quiet', '--no-hardlinks', project, clone]);
  expect(outcome, outcome.stderr).toMatchObject({ code: 0 });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function environment(): NodeJS.ProcessEnv {
  const own = Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, join(root, folder)]));
  const inherited = Object.entries(process.env).filter(([name]) => !/^(BRIDLE_|XDG_|npm_|NODE_|VITEST)/.test(name));
  return { ...Object.fromEntries(inherited), ...own };
}

function expectNothingLeft(): void {
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(root);
  expect(processesOf(root)).toEqual([]);
  for (const folder of [folders.HOME, folders.XDG_RUNTIME_DIR, folders.TMPDIR]) {
    const left = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
    // What Node.js and npm keep for themselves is theirs.
    expect(left.filter((path) => !/^(node-compile-cache|\.npm)(\/|$)/.test(path))).toEqual([]);
  }
}

function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => readCommand(pid))
    .filter((command) => command.includes(folder));
}

function readCommand(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function expectResponse(outcome: ProgramOutcome): void {
  expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
  expect(outcome.stdout).toContain('.resp.json');
}

it('SU-40 npm start in a fresh clone prints a response and leaves nothing', { timeout: DEADLINE_MS }, async () => {
  expectResponse(await runProgram('npm', ['start'], { cwd: clone, env: environment() }));
  expectNothingLeft();
  const again = await runProgram('npm', ['start'], { cwd: clone, env: environment() });
  expectResponse(again);
  expect(again.stderr).not.toMatch(/native build|TypeScript build|npm ci/);
  expectNothingLeft();
});

it('SU-41 the same as a user who is not root', { timeout: DEADLINE_MS }, async () => {
  await runProgram('chown', ['--recursive', `${USER}:`, root]);
  // A device node of the kind a desktop has, seen only in a mount namespace of its own: the machine is not changed.
  const script = join(root, 'as-user.sh');
  writeFileSync(
    script,
    `set -eu
mknod --mode=0666 "$1/fuse-device" c 10 229
mount --bind "$1/fuse-device" /dev/fuse
cd "$1/clone"
setpriv --reuid=${USER} --regid="$(id -g ${USER})" --clear-groups npm start
! grep -F "$1/" /proc/self/mountinfo | grep -v fuse-device
`,
  );
  const outcome = await runProgram('unshare', ['--mount', '--', 'sh', script, root], { env: environment() });
  expectResponse(outcome);
  expectNothingLeft();
});
