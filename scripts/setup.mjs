#!/usr/bin/env node
/**
 * Makes everything that is missing: system packages, node modules, the native build, the TypeScript build. Runs before
 * anything is installed, so it uses nothing but Node.js. Every step first looks whether its result is current, by
 * content; when all are, nothing is started and no lock is taken.
 *
 * usage: node scripts/setup.mjs [--checks]     --checks: also what `npm test` needs
 */
import { withLock } from './lib/lock.mjs';
import { say, seconds } from './lib/progress.mjs';
import { SetupError } from './lib/project.mjs';
import { ensureNative, nativeCurrent } from './setup/native.mjs';
import { ensureNodeModules, nodeModulesCurrent } from './setup/node-modules.mjs';
import { checkPlatform } from './setup/platform.mjs';
import { buildNeeds, checkNeeds, ensureSystemPackages, missingPackages } from './setup/system-packages.mjs';
import { ensureTypeScript, typeScriptCurrent } from './setup/typescript.mjs';

const needs = process.argv.includes('--checks') ? [...buildNeeds, ...checkNeeds] : buildNeeds;

async function isCurrent() {
  const results = nodeModulesCurrent() && nativeCurrent() && typeScriptCurrent();
  return results && (await missingPackages(needs)).length === 0;
}

try {
  checkPlatform(process);
  if (!(await isCurrent())) {
    const begin = performance.now();
    await ensureSystemPackages(needs);
    await withLock(async () => {
      await ensureNodeModules();
      await ensureNative();
      await ensureTypeScript();
    });
    say(`set-up complete in ${seconds(performance.now() - begin)}`);
  }
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`bridle: ${error.message}\n`);
  process.exitCode = 1;
}
