import { readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../contract/identity.js';
import { signalProcess } from '../native/process.js';
import { type Boundary, type Evidence, evidence } from './lease-record.js';

/** Emptying a boundary whose supervisor is gone. */

const SIGKILL = 9;
const POLL_MS = 5;

export type Cleanup =
  | { readonly empty: true }
  | { readonly empty: false; readonly evidence: readonly [Evidence, ...Evidence[]] };

export const EMPTY: Cleanup = { empty: true };

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

async function inodeOf(path: string): Promise<string | undefined> {
  try {
    return (await stat(path, { bigint: true })).ino.toString();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function isPopulated(path: string): Promise<boolean> {
  try {
    return !/^populated 0$/m.test(await readFile(join(path, 'cgroup.events'), 'utf8'));
  } catch (error) {
    // The directory went away between two looks: only an empty cgroup can be removed.
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENODEV') return false;
    throw error;
  }
}

/** Removes an empty cgroup with the empty ones below it. @returns false while the kernel holds one of them */
export async function removeCgroup(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true;
    if (codeOf(error) !== 'EBUSY') throw error;
  }
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeCgroup(join(path, entry.name));
  }
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EBUSY') return false;
    if (codeOf(error) === 'ENOENT') return true;
    throw error;
  }
}

async function emptyCgroup(cgroup: { path: string; inode: string }, deadline: number): Promise<Cleanup> {
  const inode = await inodeOf(cgroup.path);
  if (inode === undefined) return EMPTY;
  if (inode !== cgroup.inode) {
    const detail = `${cgroup.path} has inode ${inode}, recorded was ${cgroup.inode}`;
    return { empty: false, evidence: [evidence('identity_mismatch', detail)] };
  }
  for (;;) {
    if (!(await isPopulated(cgroup.path)) && (await removeCgroup(cgroup.path))) return EMPTY;
    if (Date.now() > deadline) {
      return { empty: false, evidence: [evidence('boundary_not_empty', `${cgroup.path} is still populated`)] };
    }
    try {
      await writeFile(join(cgroup.path, 'cgroup.kill'), '1');
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENODEV') throw error;
    }
    await sleep(POLL_MS);
  }
}

/**
 * Waits until a process is gone. `kill`: sends SIGKILL while it is provably the recorded one.
 * @param deadline milliseconds since the epoch
 */
export async function awaitGone(
  identity: ProcessIdentity,
  deadline: number,
  options: { kill: boolean },
): Promise<'gone' | 'alive' | 'mismatch'> {
  for (;;) {
    const result = signalProcess(identity, options.kill ? SIGKILL : 0);
    if (result !== 'sent') return result;
    if (Date.now() > deadline) return 'alive';
    await sleep(POLL_MS);
  }
}

/** Evidence for a boundary that cannot be judged because a system call failed. */
export function undecidable(error: unknown): Cleanup {
  return { empty: false, evidence: [evidence('boundary_indeterminate', (error as Error).message)] };
}

/**
 * Kills what is provably in the boundary and observes it. Without a cgroup the child can be killed, but nobody can
 * say any more what it had started: that is `boundary_indeterminate`. Never rejects.
 */
export async function emptyBoundary(boundary: Boundary, child: ProcessIdentity, timeoutMs: number): Promise<Cleanup> {
  try {
    return await killAndObserve(boundary, child, Date.now() + timeoutMs);
  } catch (error) {
    return undecidable(error);
  }
}

async function killAndObserve(boundary: Boundary, child: ProcessIdentity, deadline: number): Promise<Cleanup> {
  const found: Evidence[] = [];
  if (boundary.kind === 'cgroup+subreaper') {
    const cleanup = await emptyCgroup(boundary.cgroup, deadline);
    if (!cleanup.empty) found.push(...cleanup.evidence);
  }
  const gone = await awaitGone(child, deadline, { kill: true });
  if (gone === 'mismatch') {
    found.push(evidence('identity_mismatch', `pid ${child.pid} is not the recorded child any more`));
  } else if (gone === 'alive') {
    found.push(evidence('boundary_not_empty', `the child, pid ${child.pid}, did not end`));
  }
  if (boundary.kind === 'subreaper') {
    const detail = 'the supervisor ended without a report, and without a cgroup nobody can tell what the child started';
    found.push(evidence('boundary_indeterminate', detail));
  }
  const [first, ...rest] = found;
  return first === undefined ? EMPTY : { empty: false, evidence: [first, ...rest] };
}
