import * as fs from 'node:fs';
import { join } from 'node:path';
import { BridleError } from '../contract/errors.js';
import { syncDirectory } from './files.js';
import { decodeRecord, type FoundRecord, findRecords } from './record.js';
import { listSegments, MAX_SEGMENT_HEADER_BYTES, readSegment, readSegmentHeader, segmentPath } from './segment.js';
import { syncTargets, type TargetChange, type Targets } from './targets.js';

export interface TornTail {
  /** Path of the side file, relative to the state directory. */
  readonly file: string;
  readonly bytes: number;
}

export interface Recovery {
  /** Records that were replayed into their targets. */
  readonly replayed: number;
  /** What was cut off the end of the journal: never part of anything acknowledged as durable. */
  readonly torn: readonly TornTail[];
  /** Bytes beyond the last row that the journal knows, cut off targets after a loss of power. */
  readonly trimmed: readonly { readonly target: string; readonly bytes: number }[];
}

interface Scan {
  readonly number: number;
  readonly records: readonly FoundRecord[];
}

interface Fault {
  readonly position: number;
  /** The record that should stand there. */
  readonly lsn: number;
}

/**
 * Brings the targets up to the end of the journal and empties it. Doing it again after a crash in the middle gives the
 * same result.
 * @throws BridleError STATE_CORRUPT when something that was acknowledged is damaged; the journal is left as it was then
 */
export async function recover(root: string, directory: string, targets: Targets): Promise<Recovery> {
  const numbers = await listSegments(directory);
  const torn: TornTail[] = [];
  const scans = scan(directory, numbers, torn);
  // What is about to be replayed must not be lost while the targets are half changed.
  for (const { number } of scans) syncFile(segmentPath(directory, number));
  const { replayed, trimmed, touched } = replay(directory, scans, targets);
  await syncTargets(root, touched);
  for (const number of numbers) {
    fs.rmSync(segmentPath(directory, number), { force: true });
    // One after the other: what a crash leaves is always the newer end of the journal.
    await syncDirectory(directory);
  }
  return { replayed, torn, trimmed };
}

/** Reads the headers of all records, oldest first, and cuts off a torn end. */
function scan(directory: string, numbers: readonly number[], torn: TornTail[]): Scan[] {
  const scans: Scan[] = [];
  let lsn: number | undefined;
  for (const [index, number] of numbers.entries()) {
    const bytes = readSegment(directory, number);
    const header = readSegmentHeader(bytes);
    if (header === undefined) {
      if (index === numbers.length - 1 && bytes.length < MAX_SEGMENT_HEADER_BYTES) break;
      throw corrupt(number, 'its first line is damaged');
    }
    const records: FoundRecord[] = [];
    let position = header.size;
    while (position < bytes.length) {
      const record = decodeRecord(bytes, position, header.seed);
      if (record === undefined || (lsn !== undefined && record.lsn !== lsn)) {
        scans.push({ number, records });
        cutOff(directory, numbers.slice(index), { position, lsn: lsn ?? 1 }, torn);
        return scans;
      }
      records.push(record);
      lsn = record.lsn + 1;
      position = record.next;
    }
    scans.push({ number, records });
  }
  return scans;
}

/**
 * Moves everything from the fault on into side files, unless a later record proves that what is damaged had been on
 * disk: then nothing may be cut off.
 */
function cutOff(directory: string, numbers: readonly number[], fault: Fault, torn: TornTail[]): void {
  const tails: { readonly number: number; readonly position: number; readonly bytes: Buffer }[] = [];
  for (const [index, number] of numbers.entries()) {
    const bytes = readSegment(directory, number);
    const header = readSegmentHeader(bytes);
    const position = index === 0 ? fault.position : (header?.size ?? 0);
    if (header !== undefined) {
      for (const record of findRecords(bytes, position, header.seed)) {
        if (record.synced >= fault.lsn) throw corrupt(numbers[0] as number, `record ${fault.lsn} is damaged`);
      }
    }
    if (position < bytes.length) tails.push({ number, position, bytes: bytes.subarray(position) });
  }
  for (const { number, bytes } of tails) {
    const name = `torn-${number}-${Date.now()}.bin`;
    const path = join(directory, name);
    fs.writeFileSync(path, bytes, { mode: 0o600 });
    syncFile(path);
    torn.push({ file: `journal/${name}`, bytes: bytes.length });
  }
  for (const { number, position } of tails.reverse()) {
    fs.truncateSync(segmentPath(directory, number), position);
    syncFile(segmentPath(directory, number));
  }
}

interface Replay {
  replayed: number;
  readonly touched: Set<string>;
  /** Where each target ends after the last record. */
  readonly ends: Map<string, number>;
  /** The last replacement or removal of each target: what stands before it has no effect, and its base may be gone. */
  readonly resets: ReadonlyMap<string, number>;
}

function replay(directory: string, scans: readonly Scan[], targets: Targets) {
  const resets = new Map<string, number>();
  for (const { op, to, lsn } of scans.flatMap(({ records }) => records)) {
    if (op !== 'append') for (const [target] of to) resets.set(target, lsn);
  }
  const state: Replay = { replayed: 0, touched: new Set(), ends: new Map(), resets };
  for (const { number, records } of scans) {
    const bytes = readSegment(directory, number);
    targets.apply(records.flatMap((record) => changesOf(record, bytes, state, targets)));
    state.replayed += records.length;
  }
  const trimmed: { target: string; bytes: number }[] = [];
  for (const [target, end] of state.ends) {
    const surplus = targets.trim(target, end);
    if (surplus > 0) trimmed.push({ target, bytes: surplus });
  }
  return { replayed: state.replayed, trimmed, touched: state.touched };
}

function changesOf(record: FoundRecord, segment: Buffer, state: Replay, targets: Targets): TargetChange[] {
  const bytes = segment.subarray(record.start, record.end);
  const changes: TargetChange[] = [];
  for (const [target, offset] of record.to) {
    if (record.lsn < (state.resets.get(target) ?? 0)) continue;
    if (record.op !== 'append') {
      changes.push(record.op === 'put' ? { op: 'put', target, bytes } : { op: 'remove', target });
    } else if (offset <= (state.ends.get(target) ?? targets.size(target))) {
      changes.push({ op: 'append', target, offset, bytes });
    } else {
      throw new BridleError('STATE_CORRUPT', `${target} is shorter than the ${offset} bytes that were written to it`);
    }
    state.touched.add(target);
    state.ends.set(target, offset + bytes.length);
  }
  return changes;
}

function syncFile(path: string): void {
  const fd = fs.openSync(path, 'r+');
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

function corrupt(segment: number, what: string): BridleError {
  return new BridleError('STATE_CORRUPT', `journal/${segment}.log: ${what}`);
}
