import { createHash } from 'node:crypto';

/** A fact to be audited: plain JSON values. `seq`, `ts`, `prev` and `hash` are given to it. */
export interface AuditFact {
  readonly type: string;
  readonly seq?: never;
  readonly ts?: never;
  readonly prev?: never;
  readonly hash?: never;
  readonly [field: string]: unknown;
}

/** One row of `audit.jsonl`. `hash` is SHA-256 of the canonical JSON of the row without `hash`. */
export interface AuditRow {
  readonly seq: number;
  readonly ts: string;
  readonly type: string;
  /** Hash of the row before, or GENESIS. */
  readonly prev: string;
  readonly hash: string;
  readonly [field: string]: unknown;
}

/** What the first row has as `prev`. */
export const GENESIS = '0'.repeat(64);

const HASH = /^[0-9a-f]{64}$/;

export function hashOf(row: { readonly [field: string]: unknown }): string {
  const { hash: _hash, ...rest } = row;
  return createHash('sha256')
    .update(JSON.stringify(canonical(rest)))
    .digest('hex');
}

export function isAuditRow(value: unknown): value is AuditRow {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, ts, type, prev, hash } = value as { readonly [field: string]: unknown };
  const numbered = typeof seq === 'number' && Number.isSafeInteger(seq) && seq > 0;
  return numbered && typeof ts === 'string' && typeof type === 'string' && isHash(prev) && isHash(hash);
}

function isHash(value: unknown): boolean {
  return typeof value === 'string' && HASH.test(value);
}

/** The value with the keys of every object sorted, so that equal facts have equal text. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, canonical(item)]));
}
