import type { ProcessIdentity } from '../contract/identity.js';

/**
 * The control channel to a supervisor; native/supervisor/protocol.h is the other end. A frame is a length (uint32,
 * little endian, counting what follows), a kind (one byte) and a payload; a text is its length (uint32) and its bytes.
 */
const PROTOCOL_VERSION = 1;
const MAX_REPORT_BYTES = 64 * 1024;
const LENGTH_BYTES = 4;

const ORDER = { start: 1, go: 2, cleanUp: 3 } as const;
const REPORT = { gated: 1, started: 2, failed: 3, exited: 4, empty: 5, notEmpty: 6 } as const;

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
}

export type Report =
  /** The child waits at its gate. `inode` is the cgroup's, null when the boundary has none. */
  | { readonly kind: 'gated'; readonly child: ProcessIdentity; readonly inode: string | null }
  | { readonly kind: 'started' }
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
    number(order.argv.length),
    ...order.argv.flatMap(text),
    number(order.env.length),
    ...order.env.flatMap(text),
  ]);
}

export function encodeGo(): Buffer {
  return frame(ORDER.go);
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

function decodeGated(reader: Reader): Report {
  const pid = reader.number();
  const scheme = reader.text();
  const token = reader.text();
  const inode = reader.wide();
  if (scheme !== 'pidfs' && scheme !== 'starttime') throw new RangeError(`unknown birth token scheme ${scheme}`);
  return { kind: 'gated', child: { pid, token, scheme }, inode: inode === 0n ? null : inode.toString() };
}

function decodeReport(kind: number, payload: Buffer): Report {
  const reader = new Reader(payload);
  switch (kind) {
    case REPORT.gated:
      return decodeGated(reader);
    case REPORT.started:
      return { kind: 'started' };
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
