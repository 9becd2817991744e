import { readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { evidence } from '../lease-record.js';
import { type Cleanup, EMPTY } from '../platform.js';

/** Emptying and removing cgroups of boundaries from outside, after their supervisors. */

const POLL_MS = 5;

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
    // Where nothing may be removed, that is said of what does not exist, too.
    if ((await inodeOf(path)) === undefined) return true;
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

/**
 * Kills everything in a recorded cgroup until it is observed empty, and removes it. A directory with another inode is
 * another cgroup: nothing in it is touched.
 * @param deadline milliseconds since the epoch
 */
export async function emptyCgroup(cgroup: { path: string; inode: string }, deadline: number): Promise<Cleanup> {
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
