import { crc32 } from 'node:zlib';
import { BridleError } from '../contract/errors.js';
import { targetFault } from './target.js';

/**
 * A record is one line of JSON, its payload, and a newline:
 *
 *   {"op":"append","to":[["a/b.jsonl",120]],"size":3,"lsn":7,"synced":5,"crc":12,"sum":34}\n<3 bytes>\n
 *
 * `lsn` counts records without a gap. `synced` is the last record that was known to be on disk when this one was made:
 * it tells a damaged tail that nobody was promised from a damaged promise. `crc` covers the payload, `sum` the header,
 * seeded with a secret of the segment: text that a client handed in can neither pass for a record nor cost more than a
 * header to be told from one.
 */
export type Operation = 'append' | 'put' | 'remove';

export interface RecordHeader {
  readonly op: Operation;
  /** Targets with the offset at which the payload stands in each; 0 for put and remove. */
  readonly to: readonly (readonly [target: string, offset: number])[];
  readonly size: number;
  readonly lsn: number;
  readonly synced: number;
}

/** A record found in a segment: the payload is the bytes from `start` to `end`, the next record begins at `next`. */
export interface FoundRecord extends RecordHeader {
  readonly start: number;
  readonly end: number;
  readonly next: number;
}

/** Largest payload of one record. */
const MAX_PAYLOAD_BYTES = 32 * 1024 * 1024;
const MAX_TARGETS = 4;
const MAX_HEADER_BYTES = MAX_TARGETS * 1100 + 256;
const NEWLINE = 0x0a;
const SUM_KEY = ',"sum":';
const RECORD_START = Buffer.from('{"op":"');

/** Seed for the checksums of a segment. */
export function seedOf(nonce: string): number {
  return crc32(nonce);
}

/**
 * @param seed see seedOf
 * @throws BridleError INTERNAL when the payload or the number of targets is over the limit
 */
export function encodeRecord(header: Omit<RecordHeader, 'size'>, payload: Uint8Array, seed: number): Buffer {
  if (payload.length > MAX_PAYLOAD_BYTES)
    throw new BridleError('INTERNAL', `a record of ${payload.length} bytes is too long`);
  if (header.to.length === 0 || header.to.length > MAX_TARGETS) {
    throw new BridleError('INTERNAL', `a record has 1 to ${MAX_TARGETS} targets, not ${header.to.length}`);
  }
  const places = header.to.map(([target, offset]) => `["${target}",${offset}]`).join(',');
  const counts = `"size":${payload.length},"lsn":${header.lsn},"synced":${header.synced},"crc":${crc32(payload)}`;
  const head = `{"op":"${header.op}","to":[${places}],${counts}`;
  const line = `${head}${SUM_KEY}${crc32(head, seed)}}\n`;
  const record = Buffer.allocUnsafe(line.length + payload.length + 1);
  record.write(line, 0, 'latin1');
  record.set(payload, line.length);
  record[record.length - 1] = NEWLINE;
  return record;
}

/** The record that begins at `position`, or undefined when there is no whole and valid one. */
export function decodeRecord(segment: Buffer, position: number, seed: number): FoundRecord | undefined {
  const newline = segment.subarray(position, position + MAX_HEADER_BYTES).indexOf(NEWLINE);
  if (newline < 0) return undefined;
  const line = segment.toString('latin1', position, position + newline);
  const sumAt = line.lastIndexOf(SUM_KEY);
  if (sumAt < 0 || line.slice(sumAt + SUM_KEY.length) !== `${crc32(line.slice(0, sumAt), seed)}}`) return undefined;
  const header = parseHeader(line);
  if (header === undefined) return undefined;
  const start = position + newline + 1;
  const end = start + header.size;
  if (end >= segment.length || segment[end] !== NEWLINE) return undefined;
  if (crc32(segment.subarray(start, end)) !== header.crc) return undefined;
  return {
    op: header.op,
    to: header.to,
    size: header.size,
    lsn: header.lsn,
    synced: header.synced,
    start,
    end,
    next: end + 1,
  };
}

/** Valid records at or after `position`, whatever stands between them. */
export function* findRecords(segment: Buffer, position: number, seed: number): Generator<FoundRecord> {
  let at = segment.indexOf(RECORD_START, position);
  while (at >= 0) {
    const found = decodeRecord(segment, at, seed);
    if (found !== undefined) yield found;
    at = segment.indexOf(RECORD_START, found === undefined ? at + 1 : found.next);
  }
}

function parseHeader(line: string): (RecordHeader & { readonly crc: number }) | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { op, to, size, lsn, synced, crc } = value as { readonly [key: string]: unknown };
  if (op !== 'append' && op !== 'put' && op !== 'remove') return undefined;
  if (!isCount(size) || size > MAX_PAYLOAD_BYTES || !isCount(lsn) || !isCount(synced) || !isCount(crc))
    return undefined;
  if (!Array.isArray(to) || to.length === 0 || to.length > MAX_TARGETS || !to.every(isPlace)) return undefined;
  return { op, to, size, lsn, synced, crc };
}

function isPlace(value: unknown): value is readonly [string, number] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [target, offset] = value as readonly unknown[];
  return typeof target === 'string' && targetFault(target) === undefined && isCount(offset);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
