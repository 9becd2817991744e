import { existsSync } from 'node:fs';
import { timed } from '../lib/progress.mjs';
import { inRoot } from '../lib/project.mjs';
import { mustRun } from '../lib/run.mjs';

/** Release lines of Node.js that the one binary must also run on. */
export const nodeVersions = ['22', '24', '26'];

// What the package `node` fetches with an install script; named directly, no script has to run.
const platformPackage = `node-linux-${process.arch}`;

/** @param {string} version @returns {string} where the program of a release line is, once installed */
const nodeProgram = (version) =>
  inRoot('build', 'full', `node-${version}`, 'node_modules', platformPackage, 'bin', 'node');

/** Installs a Node.js from the npm registry. @param {string} version a release line, for example "22" */
export async function ensureNode(version) {
  if (existsSync(nodeProgram(version))) return;
  const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  const prefix = inRoot('build', 'full', `node-${version}`);
  await timed(`Node.js ${version}`, () =>
    mustRun(`npm install ${platformPackage}`, 'npm', [...args, '--prefix', prefix, `${platformPackage}@${version}`], {
      log: `build/logs/node-${version}.log`,
    }),
  );
}
