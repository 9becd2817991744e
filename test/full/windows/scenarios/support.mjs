/**
 * What the scenarios have in common. They run in the real node.exe, against the compiled lifecycle; this process plays
 * the daemon. Arguments: compiled sources, a folder of their own, the file for the result, the helper program.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [dist = '', folder = '', resultFile = '', helperProgram = ''] = process.argv.slice(2);
export const rest = process.argv.slice(6);
export const workFolder = folder;
export const helper = helperProgram;

/** A module of the compiled sources. */
const load = (path) => import(pathToFileURL(join(dist, path)).href);
export const { Lifecycle } = await load('lifecycle/lifecycle.js');
export const { identify } = await load('native/identity.js');
export const { holdInJob } = await load('native/job.js');

/** node.exe does not start without these. */
export const NODE_ENV = { SystemRoot: process.env.SystemRoot, PATH: process.env.PATH };

const recordsFolder = join(folder, 'records');
mkdirSync(recordsFolder, { recursive: true });

/** Lease records as files. */
const store = {
  put: async (record) => {
    writeFileSync(join(recordsFolder, record.id), JSON.stringify(record));
    return true;
  },
  remove: async ({ id }) => rmSync(join(recordsFolder, id), { force: true }),
  list: async () => records().map((content) => ({ id: content.id, content })),
};

export function records() {
  return readdirSync(recordsFolder).map((name) => JSON.parse(readFileSync(join(recordsFolder, name), 'utf8')));
}

export const { put: putRecord, remove: removeRecord } = store;

export function makeLifecycle(options = {}) {
  return new Lifecycle({ stateDir: folder, store, cleanupTimeoutMs: 5000, ...options });
}

export const OPERATION = { id: 'run-1', kind: 'run', harness: 'echo' };

/** A launch of node.exe with a script of one line. */
export function nodeSpec(script, ...args) {
  return { argv: [process.execPath, '-e', script, ...args], env: NODE_ENV, cwd: folder };
}

/** A launch of the helper. */
export function helperSpec(...args) {
  return { argv: [helper, ...args], env: {}, cwd: folder };
}

/** Does something with a child, and closes its lease whatever happened. */
export async function withChild(lifecycle, spec, action) {
  const lease = lifecycle.lease(OPERATION);
  try {
    return await action(await lease.launcher.launch(spec));
  } finally {
    await lease.close();
  }
}

/** What a child printed, and how it ended. */
export async function outcomeOf(child) {
  const [stdout, stderr, exit] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return { stdout, stderr, exit, notEnforced: child.notEnforced };
}

/** Starts a program and ends its input. */
export function runInLease(lifecycle, spec) {
  return withChild(lifecycle, spec, (child) => {
    child.stdin.end();
    return outcomeOf(child);
  });
}

/** A child that starts a detached grandchild; both would live for minutes. Their pids are in the file `family`. */
export const familyFile = join(folder, 'family');
export const familySpec = nodeSpec(
  `const { spawn } = require('node:child_process');
   const grandchild = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 300000)'], { detached: true, stdio: 'ignore' });
   grandchild.once('spawn', () => {
     require('node:fs').writeFileSync(process.argv[1], JSON.stringify([process.pid, grandchild.pid]));
   });
   setTimeout(() => {}, 300000);`,
  familyFile,
);

/** Waits until something is true, 30 s at most. */
export async function until(condition) {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await sleep(20)) {
    if (await condition()) return;
  }
  throw new Error(`in vain: ${condition}`);
}

export async function family() {
  await until(() => existsSync(familyFile) && readFileSync(familyFile, 'utf8').endsWith(']'));
  return JSON.parse(readFileSync(familyFile, 'utf8'));
}

/** Identities of all processes. Process ids on Windows are multiples of four, and small ones are used first. */
export function livingProcesses() {
  const pids = Array.from({ length: 4096 }, (_, index) => (index + 1) * 4);
  return pids.map((pid) => identify(pid)).filter((identity) => identity !== undefined);
}

/** Whether this very process lives: its number alone is soon given to another. */
export const lives = ({ pid, token }) => identify(pid)?.token === token;

/** Processes that have come since `before` was looked at. */
export function newProcesses(before) {
  const known = new Set(before.map(({ token }) => token));
  return livingProcesses().filter(({ token }) => !known.has(token));
}

/** What a promise was rejected with, as data. */
export async function failure(promise) {
  try {
    await promise;
    return 'nothing was thrown';
  } catch (error) {
    return { code: error.code, message: error.message };
  }
}

/** Leaves the result of the scenario for the test. */
export function report(result) {
  writeFileSync(resultFile, JSON.stringify(result));
}

export { sleep };
