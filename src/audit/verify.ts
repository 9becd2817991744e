import { GENESIS, hashOf, isAuditRow } from './audit-row.js';

export type AuditFault = 'not a row' | 'changed' | 'missing or reordered';

export type Verification =
  | {
      readonly ok: true;
      readonly rows: number /** Hash of the last row: keep it to notice rows cut off the end. */;
      readonly head: string;
    }
  | {
      readonly ok: false /** Number of the first bad row, counted from 1. */;
      readonly row: number;
      readonly fault: AuditFault;
    };

/** Checks the chain from its first row on. Rows cut off the end show only against a `head` kept elsewhere. */
export async function verifyAudit(rows: AsyncIterable<unknown> | Iterable<unknown>): Promise<Verification> {
  let count = 0;
  let head = GENESIS;
  for await (const row of rows) {
    count++;
    if (!isAuditRow(row)) return { ok: false, row: count, fault: 'not a row' };
    if (hashOf(row) !== row.hash) return { ok: false, row: count, fault: 'changed' };
    if (row.seq !== count || row.prev !== head) return { ok: false, row: count, fault: 'missing or reordered' };
    head = row.hash;
  }
  return { ok: true, rows: count, head };
}
