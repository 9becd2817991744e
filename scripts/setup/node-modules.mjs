import { existsSync } from 'node:fs';
import { fingerprint, readStamp, writeStamp } from '../lib/fingerprint.mjs';
import { timed } from '../lib/progress.mjs';
import { inRoot } from '../lib/project.mjs';
import { mustRun } from '../lib/run.mjs';

const STAMP = 'node_modules/.bridle-lock';

const wanted = () => fingerprint(['package-lock.json'], process.platform, process.arch);

export const nodeModulesCurrent = () => readStamp(STAMP) === wanted() && existsSync(inRoot('node_modules', 'zod'));

/** Installs exactly what the lockfile names. No package needs its install script, so none is run. */
export async function ensureNodeModules() {
  if (nodeModulesCurrent()) return;
  const npm = process.env['npm_execpath'];
  const args = ['ci', '--ignore-scripts', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  await timed('node modules (npm ci)', async () => {
    const log = 'build/logs/npm-ci.log';
    if (npm?.endsWith('.js')) await mustRun('npm ci', process.execPath, [npm, ...args], { log });
    else await mustRun('npm ci', 'npm', args, { log });
    writeStamp(STAMP, wanted());
  });
}
