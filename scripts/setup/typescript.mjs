import { chmodSync, existsSync, renameSync, rmSync } from 'node:fs';
import { filesBelow, fingerprint, installedVersion, readStamp, writeStamp } from '../lib/fingerprint.mjs';
import { timed } from '../lib/progress.mjs';
import { inRoot } from '../lib/project.mjs';
import { mustRun } from '../lib/run.mjs';

const STAMP = 'dist/.stamp';
const ENTRY = 'cli/main.js';

const wanted = () => fingerprint(['tsconfig.json', ...filesBelow('src')], installedVersion('typescript-native'));

export const typeScriptCurrent = () => existsSync(inRoot('dist', ENTRY)) && readStamp(STAMP) === wanted();

/** Compiles src to dist. The new tree replaces the old one as a whole, so a deleted source leaves nothing behind. */
export async function ensureTypeScript() {
  if (typeScriptCurrent()) return;
  await timed('TypeScript build', async () => {
    // Beside dist, not below build: the source maps hold paths relative to it.
    const next = inRoot('.dist-next');
    const old = inRoot('.dist-old');
    rmSync(next, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
    const stamp = wanted();
    const tsc = inRoot('node_modules', 'typescript-native', 'bin', 'tsc');
    await mustRun('tsc', process.execPath, [tsc, '-p', 'tsconfig.json', '--outDir', next], {
      log: 'build/logs/tsc.log',
    });
    const entry = `${next}/${ENTRY}`;
    if (existsSync(entry)) chmodSync(entry, 0o755);
    if (existsSync(inRoot('dist'))) renameSync(inRoot('dist'), old);
    renameSync(next, inRoot('dist'));
    writeStamp(STAMP, stamp);
    rmSync(old, { recursive: true, force: true });
  });
}
