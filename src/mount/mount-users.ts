import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';

export interface MountUser {
  readonly pid: number;
  /** Name of the program, as `ps` shows it. */
  readonly name: string;
}

const DIGITS = /^[0-9]+$/;
const MAX_USERS = 32;

/**
 * The processes that have a file, a directory or their program below a mount, at most 32, as far as this user may look at
 * them. Only links of /proc are read, nothing of the mount itself: it may not answer any more.
 */
export async function mountUsers(mountpoint: string): Promise<MountUser[]> {
  const users: MountUser[] = [];
  for (const pid of (await entries('/proc')).filter((entry) => DIGITS.test(entry))) {
    if (users.length === MAX_USERS) break;
    if (await uses(`/proc/${pid}`, mountpoint)) users.push({ pid: Number(pid), name: await nameOf(pid) });
  }
  return users;
}

async function uses(directory: string, mountpoint: string): Promise<boolean> {
  const files = (await entries(join(directory, 'fd'))).map((fd) => join('fd', fd));
  for (const link of ['cwd', 'root', 'exe', ...files]) {
    const target = await present(readlink(join(directory, link)));
    if (target === mountpoint || target?.startsWith(`${mountpoint}/`) === true) return true;
  }
  return false;
}

async function entries(directory: string): Promise<string[]> {
  return (await present(readdir(directory))) ?? [];
}

async function nameOf(pid: string): Promise<string> {
  return (await present(readFile(`/proc/${pid}/comm`, 'utf8')))?.trim() ?? '';
}

/** Undefined where the process has ended meanwhile, or belongs to somebody else. */
async function present<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
