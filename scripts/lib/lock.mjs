import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { say } from './progress.mjs';
import { inRoot, SetupError } from './project.mjs';

/**
 * Runs `work` while holding the project's set-up lock, so that two set-ups at once do not build over each other. The
 * lock is flock(2), held by a helper that ends with its input: it cannot outlive this process, however that ends.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(work) {
  mkdirSync(inRoot('build'), { recursive: true });
  const file = inRoot('build', '.setup-lock');
  const helper = spawn('flock', [file, 'sh', '-c', 'echo locked; read -r line'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((_, reject) => {
    helper.once('error', reject);
    helper.once('exit', (code) => reject(new SetupError(`cannot lock ${file}: flock ended with code ${code}`)));
  });
  ended.catch(() => undefined);
  const waiting = setTimeout(() => say('waiting for another set-up of this folder to finish'), 1000);
  try {
    await Promise.race([once(helper.stdout, 'data'), ended]);
    clearTimeout(waiting);
    return await work();
  } finally {
    clearTimeout(waiting);
    helper.stdin.end();
    helper.stdout.destroy();
  }
}
