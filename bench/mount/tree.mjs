// What every server of the mount benchmark shows: `d` with 1 000 files of 4 KiB, `big` (64 MiB of a real file), `latest`
// (the number of its version), and `inbox` (a hand-off directory over a real one).
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';

const FILES = 1000;
const BLOCK = 1024 * 1024;
const BIG_BYTES = 64 * BLOCK;
const LATEST_BYTES = 32;

export const CONTENT = Buffer.alloc(4096, 'x');
export const FILE_NAMES = Array.from({ length: FILES }, (_, index) => `f${String(index).padStart(4, '0')}`);

/** @param {number} version */
export function latest(version) {
  const bytes = Buffer.alloc(LATEST_BYTES);
  bytes.write(String(version));
  return bytes;
}

/** @param {number} rate passes over `big` a second */
export function toMegabytes(rate) {
  return (rate * BIG_BYTES) / 1e6;
}

/** Makes what the servers keep on disk. @param {string} directory */
export async function makeBacking(directory) {
  await mkdir(join(directory, 'inbox'), { recursive: true });
  const file = await open(join(directory, 'big'), 'w');
  const block = Buffer.alloc(BLOCK, 'b');
  for (let written = 0; written < BIG_BYTES; written += BLOCK) await file.write(block);
  // Written pages on their way to the disk would be in the way of the measurements.
  await file.sync();
  await file.close();
}
