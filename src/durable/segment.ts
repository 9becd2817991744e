import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { syncDirectory, writeAll } from './files.js';
import { seedOf } from './record.js';

const fdatasync = promisify(fs.fdatasync);
const FILE_NAME = /^([1-9][0-9]{0,14})\.log$/;
const FORMAT = 'bridle.journal/v1';
const HEADER = /^\{"journal":"bridle\.journal\/v1","segment":[0-9]+,"nonce":"([0-9a-f]{32})"\}$/;
/** Longer than any segment header: a shorter file cannot hold a record. */
export const MAX_SEGMENT_HEADER_BYTES = 128;

/**
 * Zeros that are on disk ahead of the records. Records written over them change no metadata, so that an fdatasync waits
 * for its own bytes only; else each one makes the file system commit, and everything that makes files waits for that.
 */
const ZEROS = Buffer.alloc(1024 * 1024);

/** One open segment file. It holds a durable header before the first record is written, and ends in zeros. */
export class Segment {
  readonly number: number;
  readonly path: string;
  readonly seed: number;
  /** Targets that records of this segment changed. */
  readonly dirty = new Set<string>();
  /** Last record written here; 0 when there is none. */
  lastLsn = 0;
  /** False while bytes were written that no fdatasync covered. */
  synced = true;
  size: number;
  readonly #headerBytes: number;
  readonly #fd: number;
  /** Zeros of one allocation. */
  readonly #room: Uint8Array;
  /** Size of the file. */
  #allocated: number;

  private constructor(number: number, path: string, fd: number, nonce: string, headerBytes: number, room: Uint8Array) {
    this.number = number;
    this.path = path;
    this.seed = seedOf(nonce);
    this.size = headerBytes;
    this.#headerBytes = headerBytes;
    this.#room = room;
    this.#allocated = headerBytes + room.length;
    this.#fd = fd;
  }

  /**
   * Makes the file with its header; both are on disk when this resolves.
   * @param limit bytes at which the segment will be full
   */
  static async create(directory: string, number: number, limit: number): Promise<Segment> {
    const path = segmentPath(directory, number);
    const nonce = randomBytes(16).toString('hex');
    const header = Buffer.from(`{"journal":"${FORMAT}","segment":${number},"nonce":"${nonce}"}\n`);
    const room = ZEROS.subarray(0, limit);
    const fd = fs.openSync(path, 'wx', 0o600);
    try {
      writeAll(fd, header, 0);
      writeAll(fd, room, header.length);
      await fdatasync(fd);
      await syncDirectory(directory);
    } catch (error) {
      fs.closeSync(fd);
      throw error;
    }
    return new Segment(number, path, fd, nonce, header.length, room);
  }

  get empty(): boolean {
    return this.size === this.#headerBytes;
  }

  write(bytes: Uint8Array, lastLsn: number): void {
    this.synced = false;
    writeAll(this.#fd, bytes, this.size);
    this.size += bytes.length;
    this.lastLsn = lastLsn;
  }

  /** fdatasync of what was written before the call. */
  async sync(): Promise<void> {
    this.synced = true;
    if (this.#allocated - this.size < this.#room.length / 2) this.#allocate();
    await fdatasync(this.#fd);
  }

  /** Drops all records; the caller has made sure that their targets are on disk. */
  async clear(): Promise<void> {
    fs.ftruncateSync(this.#fd, this.#headerBytes);
    this.size = this.#headerBytes;
    await fdatasync(this.#fd);
  }

  close(): void {
    fs.closeSync(this.#fd);
  }

  #allocate(): void {
    const from = Math.max(this.#allocated, this.size);
    writeAll(this.#fd, this.#room, from);
    this.#allocated = from + this.#room.length;
  }
}

/** The bytes of a segment without the zeros at its end; a record never ends in a zero. */
export function readSegment(directory: string, number: number): Buffer {
  const bytes = fs.readFileSync(segmentPath(directory, number));
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return bytes.subarray(0, end);
}

export function segmentPath(directory: string, number: number): string {
  return join(directory, `${number}.log`);
}

/** Numbers of the segment files in a directory, ascending. */
export async function listSegments(directory: string): Promise<number[]> {
  const numbers: number[] = [];
  for (const name of await readdir(directory)) {
    const match = FILE_NAME.exec(name);
    if (match !== null) numbers.push(Number(match[1]));
  }
  return numbers.sort((a, b) => a - b);
}

/** The header of a segment's bytes, or undefined when it is damaged. */
export function readSegmentHeader(bytes: Buffer): { readonly seed: number; readonly size: number } | undefined {
  const newline = bytes.subarray(0, MAX_SEGMENT_HEADER_BYTES).indexOf(0x0a);
  if (newline < 0) return undefined;
  const nonce = HEADER.exec(bytes.toString('latin1', 0, newline))?.[1];
  return nonce === undefined ? undefined : { seed: seedOf(nonce), size: newline + 1 };
}
