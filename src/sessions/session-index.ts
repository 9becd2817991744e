import { readdir, readFile } from 'node:fs/promises';
import { z } from 'zod';
import { BridleError } from '../contract/errors.js';
import { sessionNameSchema } from '../contract/names.js';
import type { Journal } from '../durable/journal.js';
import { readRows, toRow } from '../durable/rows.js';
import type { SessionMeta } from './session.js';

const indexRowSchema = z.object({
  name: sessionNameSchema,
  serial: z.number().int().nonnegative(),
  created: z.number().int().nonnegative(),
});

export type SessionIndexRow = z.infer<typeof indexRowSchema>;

/**
 * The sessions of one agent, in `agents/<agent>/sessions.jsonl`: one file to read at a start instead of one for every
 * session. It is a cache: when it is gone it is made anew from the meta.json of each session.
 */
export class SessionIndex {
  readonly #journal: Journal;
  readonly #target: string;
  readonly #directory: string;
  readonly #rows: Map<string, SessionIndexRow>;

  private constructor(journal: Journal, agent: string, rows: Map<string, SessionIndexRow>) {
    this.#journal = journal;
    this.#target = indexTarget(agent);
    this.#directory = `agents/${agent}/sessions`;
    this.#rows = rows;
  }

  /** @throws BridleError STATE_CORRUPT when a row is damaged */
  static async open(journal: Journal, agent: string): Promise<SessionIndex> {
    const target = indexTarget(agent);
    await journal.durable();
    const rows = new Map<string, SessionIndexRow>();
    for await (const value of readRows(journal.path(target))) {
      const row = indexRowSchema.safeParse(value);
      if (!row.success) throw new BridleError('STATE_CORRUPT', `${target}: row ${rows.size + 1} is damaged`);
      rows.set(row.data.name, row.data);
    }
    const index = new SessionIndex(journal, agent, rows);
    if (rows.size === 0) await index.#rebuild();
    return index;
  }

  get(name: string): SessionIndexRow | undefined {
    return this.#rows.get(name);
  }

  /** All sessions in order of creation. */
  list(): readonly SessionIndexRow[] {
    return [...this.#rows.values()];
  }

  add({ name, serial, created }: SessionMeta): void {
    const row = { name, serial, created };
    this.#journal.append(this.#target, toRow(row));
    this.#rows.set(name, row);
  }

  /** What the meta.json of a session says that the index does not have; undefined when there is none. */
  async unlisted(name: string): Promise<SessionIndexRow | undefined> {
    const target = `${this.#directory}/${name}/meta.json`;
    if (this.#journal.size(target) === 0) return undefined;
    const meta = indexRowSchema.safeParse(await readJson(this.#journal.path(target)));
    return meta.success && meta.data.name === name ? meta.data : undefined;
  }

  async #rebuild(): Promise<void> {
    const found: SessionIndexRow[] = [];
    for (const name of await listNames(this.#journal.path(this.#directory))) {
      const row = sessionNameSchema.safeParse(name).success ? await this.unlisted(name) : undefined;
      if (row !== undefined) found.push(row);
    }
    found.sort((a, b) => a.serial - b.serial);
    for (const row of found) this.#rows.set(row.name, row);
    if (found.length > 0) this.#journal.put(this.#target, found.map(toRow).join(''));
  }
}

function indexTarget(agent: string): string {
  return `agents/${agent}/sessions.jsonl`;
}

async function listNames(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** The content of a JSON file; undefined when there is none or it is damaged. */
async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
