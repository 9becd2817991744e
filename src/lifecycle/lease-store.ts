import type { LeaseRecord } from './lease-record.js';

/** What is stored under the id of a lease: a record, or what became of one. */
export interface StoredLease {
  readonly id: string;
  /** As it was parsed; the text when it is not JSON. */
  readonly content: unknown;
}

/** Where lease records live. Calls on one record take effect in call order. */
export interface LeaseStore {
  /**
   * Writes a record when the stored one has the revision before it, or when there is none and it is the first.
   * @returns true once it would survive loss of power; false when another revision is stored, and nothing changed
   */
  put(record: LeaseRecord): Promise<boolean>;
  /** Removes a record of this revision or an earlier one; nothing happens when there is none or a later one. */
  remove(record: LeaseRecord): Promise<void>;
  /** Everything that is stored. What comes or goes meanwhile may be missing. */
  list(): Promise<StoredLease[]>;
}
