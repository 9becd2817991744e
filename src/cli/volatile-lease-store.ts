import type { LeaseStore, StoredLease } from '../lifecycle/lease-store.js';

/** Records of processes that must not outlive this one: nobody recovers them. */
export class VolatileLeaseStore implements LeaseStore {
  readonly #records = new Map<string, unknown>();

  put(record: Parameters<LeaseStore['put']>[0]): Promise<boolean> {
    this.#records.set(record.id, record);
    return Promise.resolve(true);
  }

  remove({ id }: Parameters<LeaseStore['remove']>[0]): Promise<void> {
    this.#records.delete(id);
    return Promise.resolve();
  }

  list(): Promise<StoredLease[]> {
    return Promise.resolve([...this.#records].map(([id, content]) => ({ id, content })));
  }
}
