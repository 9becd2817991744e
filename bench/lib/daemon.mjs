// A daemon of the benchmark's own: separate process, fresh state.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { benchDirectory, ROOT } from './directory.mjs';

const START_LIMIT_MS = 20_000;

/** @returns {Promise<{ directory: string, mount: string, pid: number, stop: () => Promise<void> }>} */
export async function startDaemon() {
  const directory = await benchDirectory();
  const mount = join(directory, 'mount');
  const words = [join(ROOT, 'dist/cli/main.js'), 'daemon', '--mount', mount, '--state', join(directory, 'state')];
  const env = { ...process.env, BRIDLE_LOG: 'warn', XDG_CONFIG_HOME: directory };
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'], env });
  const exited = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    const [code] = await exited;
    // A daemon that died leaves its mount, and the directory could not be removed.
    if (code !== 0) spawnSync('fusermount3', ['-uz', mount], { stdio: 'ignore' });
    await rm(directory, { recursive: true, force: true });
  };
  for (const limit = performance.now() + START_LIMIT_MS; ; await sleep(20)) {
    if (await answers(mount)) break;
    if (child.exitCode !== null || performance.now() > limit) {
      await stop();
      throw new Error('the daemon did not start');
    }
  }
  return { directory, mount, pid: child.pid, stop };
}

async function answers(mount) {
  try {
    await readFile(join(mount, 'version'));
    return true;
  } catch {
    return false;
  }
}
