import type { Credentials, ReachablePaths, TerminalSize } from '../../contract/harness.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import type { LimitDirectory } from './limits.js';

/**
 * The control channel to a supervisor; native/supervisor/protocol.h is the other end. A frame is a length (uint32,
 * little endian, counting what follows), a kind (one byte) and a payload; a text is its length (uint32) and its bytes.
 */
const PROTOCOL_VERSION = 3;
const MAX_REPORT_BYTES = 64 * 1024;
const LENGTH_BYTES = 4;

const ORDER = { start: 1, cleanUp: 2, resize: 3 } as const;
const REPORT = { gated: 1, failed: 2, exited: 3, empty: 4, notEmpty: 5 } as const;

/** Bits of the order's flags. */
const FLAG = { terminal: 1, noNewPrivileges: 2, startTimeTokens: 4, credentials: 8, paths: 16 } as const;

export interface Rlimit {
  /** RLIMIT_* as the kernel numbers it. */
  readonly resource: number;
  readonly value: bigint;
}

export interface StartOrder {
  readonly argv: readonly string[];
  /** Each entry `NAME=value`. */
  readonly env: readonly string[];
  readonly cwd: string;
  /** Directory that the supervisor makes for the boundary; empty for none. */
  readonly cgroup: string;
  /** File in which the supervisor leaves the outcome of a clean-up without a cgroup. */
  readonly witness: string;
  readonly graceMs: number;
  readonly cleanupTimeoutMs: number;
  /** Size of the terminal that the child gets; null for pipes. */
  readonly terminal: TerminalSize | null;
  readonly noNewPrivileges: boolean;
  /** Name processes by start time even where the kernel has pidfs. */
  readonly startTimeTokens: boolean;
  readonly credentials: Credentials | null;
  readonly rlimits: readonly Rlimit[];
  readonly limits: readonly LimitDirectory[];
  readonly paths: ReachablePaths | null;
}

export type Report =
  /**
   * The child waits at its gate, below the reaper. `inode` is the cgroup's, null when the boundary has none.
   */
  | {
      readonly kind: 'gated';
      readonly child: ProcessIdentity;
      readonly reaper: ProcessIdentity;
      readonly inode: string | null;
    }
  | { readonly kind: 'failed'; readonly step: string; readonly errno: string }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: number | null }
  | { readonly kind: 'empty' }
  | { readonly kind: 'not-empty'; readonly survivors: readonly string[] };

function number(value: number): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES);
  bytes.writeUInt32LE(value);
  return bytes;
}

function text(value: string): Buffer[] {
  const bytes = Buffer.from(value);
  return [number(bytes.length), bytes];
}

function wide(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

function list<T>(items: readonly T[], encode: (item: T) => readonly Buffer[]): Buffer[] {
  return [number(items.length), ...items.flatMap(encode)];
}

function flagsOf(order: StartOrder): number {
  return (
    (order.terminal ? FLAG.terminal : 0) |
    (order.noNewPrivileges ? FLAG.noNewPrivileges : 0) |
    (order.startTimeTokens ? FLAG.startTimeTokens : 0) |
    (order.credentials ? FLAG.credentials : 0) |
    (order.paths ? FLAG.paths : 0)
  );
}

function frame(kind: number, payload: readonly Buffer[] = []): Buffer {
  const body = Buffer.concat([Buffer.of(kind), ...payload]);
  return Buffer.concat([number(body.length), body]);
}

export function encodeStart(order: StartOrder): Buffer {
  return frame(ORDER.start, [
    Buffer.of(PROTOCOL_VERSION),
    number(order.graceMs),
    number(order.cleanupTimeoutMs),
    ...text(order.cgroup),
    ...text(order.witness),
    ...text(order.cwd),
    ...list(order.argv, text),
    ...list(order.env, text),
    number(flagsOf(order)),
    ...(order.terminal ? [cells(order.terminal)] : []),
    ...(order.credentials ? credentials(order.credentials) : []),
    ...list(order.rlimits, ({ resource, value }) => [number(resource), wide(value)]),
    ...list(order.limits, ({ path, settings }) => [
      ...text(path),
      ...list(settings, ({ file, value }) => [...text(file), ...text(value)]),
    ]),
    ...(order.paths ? [...list(order.paths.readOnly, text), ...list(order.paths.readWrite, text)] : []),
  ]);
}

function cells({ rows, columns }: TerminalSize): Buffer {
  return number(rows * 0x1_0000 + columns);
}

function credentials({ uid, gid, groups }: Credentials): Buffer[] {
  return [number(uid), number(gid), ...list(groups, (group) => [number(group)])];
}

export function encodeResize(size: TerminalSize): Buffer {
  return frame(ORDER.resize, [cells(size)]);
}

export function encodeCleanUp(): Buffer {
  return frame(ORDER.cleanUp);
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  number(): number {
    const value = this.#bytes.readUInt32LE(this.#at);
    this.#at += LENGTH_BYTES;
    return value;
  }

  wide(): bigint {
    const value = this.#bytes.readBigUInt64LE(this.#at);
    this.#at += 8;
    return value;
  }

  text(): string {
    const length = this.number();
    if (this.#at + length > this.#bytes.length) throw new RangeError('a text is longer than its report');
    const value = this.#bytes.toString('utf8', this.#at, this.#at + length);
    this.#at += length;
    return value;
  }
}

function decodeIdentity(reader: Reader): ProcessIdentity {
  const pid = reader.number();
  const scheme = reader.text();
  const token = reader.text();
  if (scheme !== 'pidfs' && scheme !== 'starttime') throw new RangeError(`unknown birth token scheme ${scheme}`);
  return { pid, token, scheme };
}

function decodeGated(reader: Reader): Report {
  const child = decodeIdentity(reader);
  const reaper = decodeIdentity(reader);
  const inode = reader.wide();
  return { kind: 'gated', child, reaper, inode: inode === 0n ? null : inode.toString() };
}

function decodeReport(kind: number, payload: Buffer): Report {
  const reader = new Reader(payload);
  switch (kind) {
    case REPORT.gated:
      return decodeGated(reader);
    case REPORT.failed:
      return { kind: 'failed', step: reader.text(), errno: reader.text() };
    case REPORT.exited: {
      const byItself = reader.number() === 1;
      const value = reader.number();
      return { kind: 'exited', code: byItself ? value : null, signal: byItself ? null : value };
    }
    case REPORT.empty:
      return { kind: 'empty' };
    case REPORT.notEmpty:
      return {
        kind: 'not-empty',
        survivors: Array.from({ length: Math.min(reader.number(), 64) }, () => reader.text()),
      };
    default:
      throw new RangeError(`unknown report ${kind}`);
  }
}

/** Cuts the supervisor's bytes into reports, whatever the chunk borders. */
export class ReportDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** @throws RangeError when the bytes are not this protocol */
  push(chunk: Buffer): Report[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const reports: Report[] = [];
    while (this.#rest.length >= LENGTH_BYTES) {
      const length = this.#rest.readUInt32LE();
      if (length === 0 || length > MAX_REPORT_BYTES) throw new RangeError(`a report of ${length} bytes`);
      if (this.#rest.length < LENGTH_BYTES + length) break;
      const body = this.#rest.subarray(LENGTH_BYTES, LENGTH_BYTES + length);
      this.#rest = this.#rest.subarray(LENGTH_BYTES + length);
      reports.push(decodeReport(body.readUInt8(0), body.subarray(1)));
    }
    return reports;
  }
}
