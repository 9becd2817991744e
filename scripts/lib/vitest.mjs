import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { treeFingerprint } from '../evaluate/environment.mjs';
import { evidenceDir, inRoot } from './project.mjs';
import { run } from './run.mjs';

/**
 * Runs one set of tests; leaves the results, the description of the run and its log in the evidence folder.
 * @param {'default' | 'full'} set
 * @returns {Promise<number>} exit code of the runner
 */
export async function runTests(set) {
  const suffix = set === 'full' ? '-full' : '';
  const results = join(evidenceDir, `vitest${suffix}.json`);
  const description = join(evidenceDir, `run${suffix}.json`);
  mkdirSync(evidenceDir, { recursive: true });
  rmSync(results, { force: true });
  rmSync(description, { force: true });
  const started = new Date().toISOString();
  const tree = treeFingerprint();
  const { code } = await run(
    process.execPath,
    [
      inRoot('node_modules', 'vitest', 'vitest.mjs'),
      'run',
      `--project=${set}`,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${results}`,
    ],
    { show: true, log: join(evidenceDir, `vitest${suffix}.log`), env: { ...process.env, FORCE_COLOR: '0' } },
  );
  const record = { set, started, ended: new Date().toISOString(), tree, exitCode: code };
  writeFileSync(description, `${JSON.stringify(record, undefined, 2)}\n`);
  return code;
}
