import { existsSync } from 'node:fs';
import { timed } from '../lib/progress.mjs';
import { SetupError } from '../lib/project.mjs';
import { mustRun, run, which } from '../lib/run.mjs';

/**
 * A Debian package and how to see that what it brings is there: somebody may have installed it in another way, and a
 * look is cheaper than asking the package manager.
 * @typedef {{ package: string, present: () => boolean | Promise<boolean> }} Need
 */

/** @type {(name: string) => () => boolean} */
const program = (name) => () => which(name) !== undefined;

/** What `npm start` needs. @type {readonly Need[]} */
export const buildNeeds = [
  { package: 'cmake', present: program('cmake') },
  { package: 'g++', present: program('g++') },
  { package: 'make', present: () => which('make') !== undefined || which('ninja') !== undefined },
  { package: 'pkg-config', present: program('pkg-config') },
  { package: 'fuse3', present: program('fusermount3') },
  {
    package: 'libfuse3-dev',
    present: async () =>
      which('pkg-config') !== undefined && (await run('pkg-config', ['--exists', 'fuse3'])).code === 0,
  },
];

/** What the checks of `npm test` need besides. @type {readonly Need[]} */
export const checkNeeds = [
  { package: 'clang-tidy', present: program('clang-tidy') },
  { package: 'shellcheck', present: program('shellcheck') },
  { package: 'python3', present: program('python3') },
  { package: 'git', present: program('git') },
];

/** What `npm run test:full` needs besides. @type {readonly Need[]} */
export const fullNeeds = [
  { package: 'util-linux', present: () => which('setpriv') !== undefined && which('unshare') !== undefined },
  { package: 'systemd', present: program('systemd-analyze') },
  { package: 'zsh', present: program('zsh') },
  { package: 'fish', present: program('fish') },
  { package: 'g++-mingw-w64-x86-64-posix', present: program('x86_64-w64-mingw32-g++-posix') },
  { package: 'wine', present: program('wine') },
  { package: 'wine64', present: () => existsSync('/usr/lib/wine/wine64') || which('wine64') !== undefined },
];

/** @param {readonly Need[]} needs @returns {Promise<string[]>} packages whose content is not there */
export async function missingPackages(needs) {
  const present = await Promise.all(needs.map((need) => need.present()));
  return needs.filter((_, index) => !present[index]).map((need) => need.package);
}

/**
 * Installs what is missing, with apt-get when we may; otherwise names the one command to run.
 * @param {readonly Need[]} needs
 * @throws SetupError
 */
export async function ensureSystemPackages(needs) {
  const missing = await missingPackages(needs);
  if (missing.length === 0) return;
  if (which('apt-get') === undefined) {
    throw new SetupError(`missing, and there is no apt-get to install it with: ${missing.join(' ')}`);
  }
  const prefix = await privilege();
  if (prefix === undefined) {
    throw new SetupError(
      `system packages are missing. Run this once, then try again:\n\n  sudo apt-get install -y ${missing.join(' ')}\n`,
    );
  }
  await timed(`system packages: ${missing.join(' ')}`, () => install(prefix, missing));
  const still = await missingPackages(needs);
  if (still.length > 0) throw new SetupError(`installed, but still not found: ${still.join(' ')}`);
}

/** @param {readonly string[]} prefix @param {readonly string[]} packages */
async function install(prefix, packages) {
  const log = 'build/logs/apt.log';
  const apt = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-o', 'DPkg::Lock::Timeout=300'];
  const [first = 'env', ...rest] = apt;
  const args = [...rest, 'install', '-y', '--no-install-recommends', ...packages];
  // The package lists of a fresh machine are absent or old: then the first attempt fails quickly.
  if ((await run(first, args, { log })).code === 0) return;
  await mustRun('apt-get update', first, [...rest, 'update'], { log });
  await mustRun('apt-get install', first, args, { log });
}

/** @returns {Promise<string[] | undefined>} what to put before a command that needs root */
async function privilege() {
  if (process.getuid?.() === 0) return [];
  if (which('sudo') !== undefined && (await run('sudo', ['-n', 'true'])).code === 0) return ['sudo', '-n'];
  return undefined;
}
