import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Journal } from '../durable/journal.js';
import type { LeaseRecord } from './lease-record.js';
import type { LeaseStore } from './lease-store.js';

const DIRECTORY = 'leases';

function targetOf(id: string): string {
  return `${DIRECTORY}/${id}.json`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** Lease records as `leases/<id>.json` in the state directory, written through its journal. */
export class JournalLeaseStore implements LeaseStore {
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async put(record: LeaseRecord): Promise<void> {
    this.#journal.put(targetOf(record.id), `${JSON.stringify(record, undefined, 2)}\n`);
    await this.#journal.durable();
  }

  async remove(id: string): Promise<void> {
    this.#journal.remove(targetOf(id));
    await this.#journal.durable();
  }

  async list(): Promise<unknown[]> {
    await this.#journal.durable();
    const directory = this.#journal.path(DIRECTORY);
    let names: string[];
    try {
      names = await readdir(directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
    const files = names.filter((name) => name.endsWith('.json')).sort();
    return Promise.all(files.map(async (name) => parse(await readFile(join(directory, name), 'utf8'))));
  }
}
