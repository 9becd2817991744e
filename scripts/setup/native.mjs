import { existsSync, readFileSync, rmSync } from 'node:fs';
import { filesBelow, fingerprint, installedVersion, readStamp, writeStamp } from '../lib/fingerprint.mjs';
import { timed } from '../lib/progress.mjs';
import { inRoot, root } from '../lib/project.mjs';
import { mustRun } from '../lib/run.mjs';

const STAMP = 'build/Release/.stamp';
const results = ['bridle.node', 'bridle-supervisor'];

const wanted = () =>
  fingerprint(
    ['CMakeLists.txt', ...filesBelow('native')],
    process.arch,
    ...['cmake-js', 'node-addon-api', 'node-api-headers'].map(installedVersion),
  );

export const nativeCurrent = () =>
  results.every((name) => existsSync(inRoot('build', 'Release', name))) && readStamp(STAMP) === wanted();

/** Builds the addon and the supervisor into build/Release. */
export async function ensureNative() {
  if (nativeCurrent()) return;
  await timed('native build', async () => {
    forgetMovedTree();
    const cmakeJs = inRoot('node_modules', 'cmake-js', 'bin', 'cmake-js');
    // `configure` always, so that a changed CMakeLists.txt or compiler is seen; `compile` would delete build/ on failure.
    await mustRun('cmake (configure)', process.execPath, [cmakeJs, 'configure'], { log: 'build/logs/configure.log' });
    await mustRun('cmake (build)', process.execPath, [cmakeJs, 'build', '--parallel', '2'], {
      log: 'build/logs/native.log',
    });
    writeStamp(STAMP, wanted());
  });
}

/** CMake refuses a cache that was made at another path: start afresh when the tree was moved or copied. */
function forgetMovedTree() {
  const cache = inRoot('build', 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const home = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8'))?.[1];
  if (home === root) return;
  rmSync(cache);
  rmSync(inRoot('build', 'CMakeFiles'), { recursive: true, force: true });
}
