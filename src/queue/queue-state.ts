import { BridleError } from '../contract/errors.js';
import type { Request } from '../contract/request.js';
import type { Triple } from '../contract/terminal.js';
import type { AcceptedRow, QueueRow } from './queue-rows.js';

/** What was accepted: as it stands in the log, and never changed. */
export interface AcceptedRequest {
  readonly agent: string;
  readonly id: string;
  readonly serial: number;
  /** SHA-256 of the request file, hexadecimal. */
  readonly digest: string;
  readonly uid: number;
  readonly gid: number;
  readonly pid: number;
  /** Time of acceptance, ISO 8601. */
  readonly ts: string;
  readonly request: Request;
}

/** An accepted request that has a session and a run and no outcome yet. */
export interface StartedRequest extends AcceptedRequest {
  readonly session: string;
  readonly run: string;
}

export interface RunPlace {
  readonly session: string;
  readonly run: string;
}

export type Result = { readonly [key in keyof Triple]: string };

/** What the queue knows of one id. The content of a request is kept until it is finished. */
export type QueueEntry = {
  readonly agent: string;
  readonly id: string;
  readonly serial: number;
  readonly digest: string;
} & (
  | { readonly state: 'waiting'; readonly accepted: AcceptedRequest }
  | { readonly state: 'running'; readonly accepted: AcceptedRequest; readonly place: RunPlace }
  | { readonly state: 'finished'; readonly place: RunPlace; readonly result: Result }
);

/** The queue log folded in memory. Rows that do not follow from each other are refused. */
export class QueueState {
  /** Per agent by id. */
  readonly #entries = new Map<string, Map<string, QueueEntry>>();
  /** Entries that are not finished, in order of acceptance; the key is agent and id. */
  readonly #open = new Map<string, QueueEntry>();
  readonly #openOf = new Map<string, number>();

  get open(): number {
    return this.#open.size;
  }

  openOf(agent: string): number {
    return this.#openOf.get(agent) ?? 0;
  }

  get(agent: string, id: string): QueueEntry | undefined {
    return this.#entries.get(agent)?.get(id);
  }

  entriesOf(agent: string): Iterable<QueueEntry> {
    return this.#entries.get(agent)?.values() ?? [];
  }

  unfinished(): IterableIterator<QueueEntry> {
    return this.#open.values();
  }

  *all(): IterableIterator<QueueEntry> {
    for (const entries of this.#entries.values()) yield* entries.values();
  }

  /** @throws BridleError STATE_CORRUPT when the row does not follow from the earlier ones */
  fold(row: QueueRow): void {
    if (row.type === 'compacted') return;
    const before = this.get(row.agent, row.id);
    if (row.type === 'accepted') this.#accept(row, before);
    else if (row.type === 'receipt') this.#receipt(row, before);
    else if (before?.state !== 'waiting' && before?.state !== 'running') throw disorder(row);
    else if (row.type === 'started') {
      // A run that recovery starts again is started a second time.
      const { agent, id, serial, digest, accepted } = before;
      const place = { session: row.session, run: row.run };
      this.#set({ agent, id, serial, digest, state: 'running', accepted, place });
    } else {
      const { agent, id, serial, digest } = before;
      const place = before.state === 'running' ? before.place : { session: '', run: '' };
      this.#set({ agent, id, serial, digest, state: 'finished', place, result: row.result });
    }
  }

  #accept(row: AcceptedRow, before: QueueEntry | undefined): void {
    if (before !== undefined) throw disorder(row);
    const { agent, id, serial, digest, uid, gid, pid, ts, request } = row;
    const accepted = { agent, id, serial, digest, uid, gid, pid, ts, request };
    this.#openOf.set(agent, this.openOf(agent) + 1);
    this.#set({ agent, id, serial, digest, state: 'waiting', accepted });
  }

  #receipt(row: Extract<QueueRow, { type: 'receipt' }>, before: QueueEntry | undefined): void {
    if (before !== undefined) throw disorder(row);
    const { agent, id, serial, digest, session, run, result } = row;
    this.#openOf.set(agent, this.openOf(agent) + 1);
    this.#set({ agent, id, serial, digest, state: 'finished', place: { session, run }, result });
  }

  #set(entry: QueueEntry): void {
    let entries = this.#entries.get(entry.agent);
    if (entries === undefined) {
      entries = new Map();
      this.#entries.set(entry.agent, entries);
    }
    entries.set(entry.id, entry);
    const key = `${entry.agent}/${entry.id}`;
    if (entry.state === 'finished') {
      this.#open.delete(key);
      this.#openOf.set(entry.agent, this.openOf(entry.agent) - 1);
    } else {
      this.#open.set(key, entry);
    }
  }
}

function disorder(row: Exclude<QueueRow, { type: 'compacted' }>): BridleError {
  return new BridleError('STATE_CORRUPT', `queue: a row "${row.type}" of ${row.agent}/${row.id} does not follow`);
}
