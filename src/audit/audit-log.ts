import { BridleError } from '../contract/errors.js';
import type { Journal } from '../durable/journal.js';
import { lastRow, toRow } from '../durable/rows.js';
import { type AuditFact, type AuditRow, GENESIS, hashOf, isAuditRow } from './audit-row.js';

export const AUDIT_TARGET = 'audit.jsonl';

/** The audit trail: one append-only file whose rows are chained by their hashes. */
export class AuditLog {
  readonly #journal: Journal;
  #seq: number;
  #prev: string;

  private constructor(journal: Journal, seq: number, prev: string) {
    this.#journal = journal;
    this.#seq = seq;
    this.#prev = prev;
  }

  /**
   * Goes on with the chain in `audit.jsonl`; reads only its last row.
   * @throws BridleError STATE_CORRUPT when that row is damaged
   */
  static async open(journal: Journal): Promise<AuditLog> {
    const last = await lastRow(journal.path(AUDIT_TARGET));
    if (last === undefined) return new AuditLog(journal, 0, GENESIS);
    if (!isAuditRow(last) || hashOf(last) !== last.hash) {
      throw new BridleError('STATE_CORRUPT', `${AUDIT_TARGET}: the last row is damaged`);
    }
    return new AuditLog(journal, last.seq, last.hash);
  }

  /** Adds a row; it is on disk when the journal's durable() says so. Values that JSON cannot carry are left out. */
  append(fact: AuditFact): AuditRow {
    const plain = JSON.parse(JSON.stringify(fact)) as { readonly type: string };
    const open = { seq: this.#seq + 1, ts: new Date().toISOString(), ...plain, prev: this.#prev };
    const row: AuditRow = { ...open, hash: hashOf(open) };
    this.#journal.append(AUDIT_TARGET, toRow(row));
    this.#seq = row.seq;
    this.#prev = row.hash;
    return row;
  }
}
