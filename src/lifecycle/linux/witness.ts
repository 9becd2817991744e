import { readFile, unlink } from 'node:fs/promises';

/**
 * What a supervisor without a cgroup wrote down about its clean-up, for a daemon that might not have lived to hear it.
 * @returns undefined when it wrote nothing: it was killed, or it is still there
 */
export async function readWitness(path: string): Promise<'empty' | 'not-empty' | undefined> {
  try {
    return (await readFile(path, 'utf8')) === 'empty\n' ? 'empty' : 'not-empty';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export async function removeWitness(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
