import type { LeaseRecord } from './lease-record.js';

/** Where lease records live. Calls on one record take effect in call order. */
export interface LeaseStore {
  /** Resolves when the record would survive loss of power. */
  put(record: LeaseRecord): Promise<void>;
  /** Removes a record; nothing happens when there is none. */
  remove(id: string): Promise<void>;
  /** Every stored record as it was parsed; a file that is not JSON is given as its text. */
  list(): Promise<unknown[]>;
}
