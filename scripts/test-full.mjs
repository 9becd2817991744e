#!/usr/bin/env node
/**
 * `npm run test:full`: what needs more than a user's machine should have to install. Installs it from Debian and npm
 * (below build/full), runs the tests of test/full, and evaluates everything that is known then.
 */
import { existsSync } from 'node:fs';
import { ensureNode, nodeVersions } from './full/nodes.mjs';
import { ensureWindowsNode, windowsNodeVersions } from './full/windows-nodes.mjs';
import { say, seconds, timed } from './lib/progress.mjs';
import { evidenceDir, inRoot, SetupError } from './lib/project.mjs';
import { mustRun, run } from './lib/run.mjs';
import { runTests } from './lib/vitest.mjs';
import { ensureSystemPackages, fullNeeds } from './setup/system-packages.mjs';

const begin = performance.now();
const script = (/** @type {string[]} */ ...args) => run(process.execPath, args, { show: true });

try {
  if ((await script(inRoot('scripts', 'setup.mjs'), '--checks')).code !== 0) process.exit(1);
  await ensureSystemPackages(fullNeeds);
  for (const version of nodeVersions) await ensureNode(version);
  for (const version of windowsNodeVersions) await ensureWindowsNode(version);
  const clis = inRoot('scripts', 'full', 'install-clis.mjs');
  await timed('agent CLIs', () => mustRun('install-clis', process.execPath, [clis], { log: 'build/logs/clis.log' }));
  const tests = await runTests('full');
  // Without results of `npm test` the evaluation could only say that they are missing.
  const evaluated = existsSync(`${evidenceDir}/vitest.json`)
    ? (await script(inRoot('scripts', 'evaluate.mjs'))).code
    : 0;
  const passed = tests === 0 && evaluated === 0;
  say(`npm run test:full ${passed ? 'passed' : 'FAILED'} in ${seconds(performance.now() - begin)}`);
  process.exitCode = passed ? 0 : 1;
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`bridle: ${error.message}\n`);
  process.exitCode = 1;
}
