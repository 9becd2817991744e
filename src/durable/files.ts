import * as fs from 'node:fs';
import { open } from 'node:fs/promises';
import { BridleError } from '../contract/errors.js';

/** Writes all bytes at a position: a short write goes on where it stopped. */
export function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += fs.writeSync(fd, bytes, done, bytes.length - done, position + done);
  }
}

/** Makes the names in a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Replaces a small file so that a crash at any point leaves the old or the new content.
 * @throws BridleError STATE_UNWRITABLE
 */
export function replaceFileSync(directory: string, path: string, content: string): void {
  const temporary = `${path}.tmp`;
  try {
    fs.writeFileSync(temporary, content, { mode: 0o600, flush: true });
    fs.renameSync(temporary, path);
    const fd = fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** A failure of the disk as STATE_UNWRITABLE; a BridleError stays what it is. */
export function unwritable(path: string, error: unknown): BridleError {
  if (error instanceof BridleError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new BridleError('STATE_UNWRITABLE', `${path} cannot be written: ${message}`, { cause: error });
}
