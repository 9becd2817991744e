/**
 * Installs the agent CLIs of the full tests at exact versions below <project>/build/full/clis (or $BRIDLE_FULL_DIR).
 * Idempotent: does nothing when the installed versions are the wanted ones. Prints the directory of the programs.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

/** package.json with exact versions (npm would silently take an older one to satisfy `engines`), and its lockfile. */
const manifests = fileURLToPath(new URL('./clis/', import.meta.url));

/** Directory of everything that the full tests install or make. */
export function fullDirectory() {
  return process.env['BRIDLE_FULL_DIR'] ?? fileURLToPath(new URL('../../build/full', import.meta.url));
}

/** @returns {Promise<string>} directory that holds the programs `codex` and `pi` */
export async function installClis() {
  const prefix = join(fullDirectory(), 'clis');
  const programs = join(prefix, 'node_modules', '.bin');
  if (await isInstalled(prefix)) return programs;
  await rm(prefix, { recursive: true, force: true });
  await mkdir(prefix, { recursive: true });
  for (const name of ['package.json', 'package-lock.json']) await copyFile(join(manifests, name), join(prefix, name));
  const args = ['ci', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  await promisify(execFile)('npm', args, { cwd: prefix, maxBuffer: 16 * 1024 * 1024 });
  if (!(await isInstalled(prefix))) throw new Error(`npm did not install the wanted versions in ${prefix}`);
  return programs;
}

/** @param {string} prefix */
async function isInstalled(prefix) {
  const { dependencies } = JSON.parse(await readFile(join(manifests, 'package.json'), 'utf8'));
  /** @type {[string, string][]} */
  const wanted = Object.entries(dependencies);
  const found = await Promise.all(wanted.map(([name]) => installedVersion(prefix, name)));
  return wanted.every(([, version], index) => found[index] === version);
}

/** @param {string} prefix @param {string} name @returns {Promise<string | undefined>} */
async function installedVersion(prefix, name) {
  try {
    return JSON.parse(await readFile(join(prefix, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.stdout.write(`${await installClis()}\n`);
}
