import { type FileHandle, open } from 'node:fs/promises';
import { BridleError } from '../contract/errors.js';

const BLOCK_BYTES = 64 * 1024;
/** Longest line that is read; a longer one is damage. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;
const NEWLINE = 0x0a;

export interface TornLine {
  /** Where the line without an end begins. */
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Rows of a JSONL file, first to last, with memory for one row and one block. A file that does not exist has none.
 * @param onTorn told of a last line that has no end; without it such a line is STATE_CORRUPT
 * @throws BridleError STATE_CORRUPT naming the file and the byte of a line that is not JSON
 */
export async function* readRows(path: string, onTorn?: (torn: TornLine) => void): AsyncGenerator<unknown, void, void> {
  await using file = await openExisting(path);
  if (file === undefined) return;
  let rest: Buffer[] = [];
  let restBytes = 0;
  let lineStart = 0;
  for (let position = 0; ; ) {
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    let from = 0;
    for (let to = block.indexOf(NEWLINE); to >= 0 && to < bytesRead; to = block.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...rest, block.subarray(from, to)]);
      yield parse(path, line, lineStart);
      lineStart += line.length + 1;
      rest = [];
      restBytes = 0;
      from = to + 1;
    }
    rest.push(block.subarray(from, bytesRead));
    restBytes += bytesRead - from;
    if (restBytes > MAX_LINE_BYTES) throw corrupt(path, lineStart, 'a line is too long');
  }
  if (restBytes === 0) return;
  if (onTorn === undefined) throw corrupt(path, lineStart, 'the last line has no end');
  onTorn({ offset: lineStart, bytes: restBytes });
}

/**
 * Rows of a JSONL file, last to first, with memory for one row and one block. A file that does not exist has none.
 * @throws BridleError STATE_CORRUPT as readRows
 */
export async function* readRowsBackward(path: string): AsyncGenerator<unknown, void, void> {
  for await (const { line, offset } of readLinesBackward(path)) yield parse(path, line, offset);
}

/**
 * Lines of a file without their newlines, last to first, with the offset at which each begins.
 * @throws BridleError STATE_CORRUPT when the last line has no end
 */
async function* readLinesBackward(
  path: string,
): AsyncGenerator<{ readonly line: Buffer; readonly offset: number }, void, void> {
  await using file = await openExisting(path);
  if (file === undefined) return;
  let position = (await file.stat()).size;
  if (position === 0) return;
  /** What is known of the line that is being put together, first block first. */
  let parts: Buffer[] = [];
  let partBytes = 0;
  let first = true;
  while (position > 0) {
    const bytes = Math.min(BLOCK_BYTES, position);
    position -= bytes;
    const block = await readBlock(file, path, position, bytes);
    let to = bytes;
    if (first) {
      if (block[bytes - 1] !== NEWLINE) throw corrupt(path, position + bytes, 'the last line has no end');
      to = bytes - 1;
      first = false;
    }
    while (to > 0) {
      const newline = block.lastIndexOf(NEWLINE, to - 1);
      if (newline < 0) break;
      yield { line: Buffer.concat([block.subarray(newline + 1, to), ...parts]), offset: position + newline + 1 };
      parts = [];
      partBytes = 0;
      to = newline;
    }
    parts.unshift(block.subarray(0, to));
    partBytes += to;
    if (partBytes > MAX_LINE_BYTES) throw corrupt(path, position, 'a line is too long');
  }
  yield { line: Buffer.concat(parts), offset: 0 };
}

/** The last row of a JSONL file, or undefined when there is none. */
export async function lastRow(path: string): Promise<unknown> {
  for await (const row of readRowsBackward(path)) return row;
  return undefined;
}

/** One line of a JSONL file. */
export function toRow(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

async function readBlock(file: FileHandle, path: string, position: number, bytes: number): Promise<Buffer> {
  const block = Buffer.allocUnsafe(bytes);
  for (let done = 0; done < bytes; ) {
    const { bytesRead } = await file.read(block, done, bytes - done, position + done);
    if (bytesRead === 0) throw corrupt(path, position + done, 'the file became shorter while it was read');
    done += bytesRead;
  }
  return block;
}

async function openExisting(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function parse(path: string, line: Buffer, offset: number): unknown {
  try {
    return JSON.parse(line.toString('utf8'));
  } catch (cause) {
    throw corrupt(path, offset, 'a line is not JSON', cause);
  }
}

function corrupt(path: string, offset: number, what: string, cause?: unknown): BridleError {
  return new BridleError('STATE_CORRUPT', `${path}: ${what}, at byte ${offset}`, { cause });
}
