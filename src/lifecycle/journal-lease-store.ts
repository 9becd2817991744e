import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Journal } from '../durable/journal.js';
import type { LeaseRecord } from './lease-record.js';
import type { LeaseStore, StoredLease } from './lease-store.js';

const DIRECTORY = 'leases';
const SUFFIX = '.json';

function targetOf(id: string): string {
  return `${DIRECTORY}/${id}${SUFFIX}`;
}

/** What is there, or undefined where nothing is any more. */
async function present<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/**
 * Lease records as `leases/<id>.json` in the state directory, written through its journal. The lock of the state
 * directory makes this the only writer, so revisions are compared in memory.
 */
export class JournalLeaseStore implements LeaseStore {
  readonly #journal: Journal;
  readonly #revisions = new Map<string, number>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async put(record: LeaseRecord): Promise<boolean> {
    if (record.revision !== (this.#revisions.get(record.id) ?? 0) + 1) return false;
    this.#revisions.set(record.id, record.revision);
    this.#journal.put(targetOf(record.id), `${JSON.stringify(record, undefined, 2)}\n`);
    await this.#journal.synced();
    return true;
  }

  async remove({ id, revision }: LeaseRecord): Promise<void> {
    if ((this.#revisions.get(id) ?? 0) > revision) return;
    this.#revisions.delete(id);
    this.#journal.remove(targetOf(id));
    await this.#journal.synced();
  }

  async list(): Promise<StoredLease[]> {
    await this.#journal.durable();
    const directory = this.#journal.path(DIRECTORY);
    const names = ((await present(readdir(directory))) ?? []).filter((name) => name.endsWith(SUFFIX)).sort();
    const texts = await Promise.all(names.map((name) => present(readFile(join(directory, name), 'utf8'))));
    const stored = names.flatMap((name, at): StoredLease[] => {
      const text = texts[at];
      return text === undefined ? [] : [{ id: name.slice(0, -SUFFIX.length), content: parse(text) }];
    });
    for (const { content } of stored) this.#learn(content);
    return stored;
  }

  /** What an earlier daemon stored has a revision, too. */
  #learn(record: unknown): void {
    if (typeof record !== 'object' || record === null) return;
    const { id, revision } = record as Partial<LeaseRecord>;
    if (typeof id !== 'string' || typeof revision !== 'number') return;
    if ((this.#revisions.get(id) ?? 0) < revision) this.#revisions.set(id, revision);
  }
}
