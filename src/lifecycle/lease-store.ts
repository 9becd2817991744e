import type { LeaseRecord } from './lease-record.js';

/** Where lease records live. Calls on one record take effect in call order. */
export interface LeaseStore {
  /**
   * Writes a record when the stored one has the revision before it, or when there is none and it is the first.
   * @returns true once it would survive loss of power; false when another revision is stored, and nothing changed
   */
  put(record: LeaseRecord): Promise<boolean>;
  /** Removes a record of this revision or an earlier one; nothing happens when there is none or a later one. */
  remove(record: LeaseRecord): Promise<void>;
  /** Every stored record as it was parsed; a file that is not JSON is given as its text. */
  list(): Promise<unknown[]>;
}
