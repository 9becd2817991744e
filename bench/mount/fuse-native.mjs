// The Node binding that Bridle is compared with. No dependency of the project: only this benchmark wants it.
import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { arch, platform } from 'node:process';
import { promisify } from 'node:util';

export const FUSE_NATIVE = 'fuse-native@2.2.6';

/**
 * Fetches it with its prebuilt binaries; no install script is run.
 * @param {string} directory where to put it
 * @returns {Promise<NodeJS.ProcessEnv>} environment in which it loads
 */
export async function fetchFuseNative(directory) {
  await mkdir(directory);
  // Without this npm would install into a directory further up that has one.
  await writeFile(join(directory, 'package.json'), '{"private":true}');
  const words = ['install', '--prefix', directory, '--ignore-scripts', '--no-audit', '--no-fund', FUSE_NATIVE];
  await promisify(execFile)('npm', words, { cwd: directory });
  const prebuilt = join(directory, 'node_modules/fuse-native/prebuilds', `${platform}-${arch}`);
  // Its binary asks for the library by the name that a system package would give it.
  await symlink('libfuse.so', join(prebuilt, 'libfuse.so.2'));
  return { ...process.env, LD_LIBRARY_PATH: prebuilt };
}
