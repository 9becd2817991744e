import { createHash } from 'node:crypto';
import { BridleError } from '../contract/errors.js';
import type { Caller } from '../contract/identity.js';
import type { Request } from '../contract/request.js';
import type { Journal } from '../durable/journal.js';
import { toRow } from '../durable/rows.js';
import { openQueueLog } from './queue-log.js';
import type { QueueRow } from './queue-rows.js';
import type { AcceptedRequest, QueueEntry, QueueState, Result, RunPlace, StartedRequest } from './queue-state.js';

export type { AcceptedRequest, QueueEntry, StartedRequest } from './queue-state.js';

export interface QueueOptions {
  /** Requests of one agent that may be waiting or running. Default 1024. */
  readonly perAgent?: number;
  /** A log over this many bytes is compacted when it is opened. Default 64 MiB. */
  readonly compactBytes?: number;
}

export interface Acceptance {
  readonly agent: string;
  readonly id: string;
  /** The request file as it was handed in: its digest decides between a replay and a conflict. */
  readonly bytes: Uint8Array;
  readonly request: Request;
  readonly caller: Caller;
}

export type AcceptResult =
  | { readonly kind: 'accepted'; readonly entry: AcceptedRequest }
  | { readonly kind: 'replay'; readonly entry: QueueEntry };

/** Accepted requests of all agents: a log in the journal, folded in memory. All changes are synchronous. */
export class Queue {
  readonly #journal: Journal;
  readonly #nextSerial: () => number;
  readonly #perAgent: number;
  readonly #target: string;
  readonly #state: QueueState;

  private constructor(
    journal: Journal,
    nextSerial: () => number,
    perAgent: number,
    log: { target: string; state: QueueState },
  ) {
    this.#journal = journal;
    this.#nextSerial = nextSerial;
    this.#perAgent = perAgent;
    this.#target = log.target;
    this.#state = log.state;
  }

  /**
   * @param nextSerial gives each accepted request its number
   * @throws BridleError STATE_CORRUPT when the log is damaged
   */
  static async open(journal: Journal, nextSerial: () => number, options: QueueOptions = {}): Promise<Queue> {
    const log = await openQueueLog(journal, options.compactBytes ?? 64 * 1024 * 1024);
    return new Queue(journal, nextSerial, options.perAgent ?? 1024, log);
  }

  /** Requests that are waiting or running. */
  get open(): number {
    return this.#state.open;
  }

  /**
   * Takes a request in. On return it survives the death of this process; await the journal's durable() for more.
   * @returns `replay` with what is known when the same content was accepted under this id before
   * @throws BridleError REQUEST_CONFLICT when the id was used with other content, QUEUE_FULL, STATE_UNWRITABLE
   */
  accept({ agent, id, bytes, request, caller }: Acceptance): AcceptResult {
    const digest = createHash('sha256').update(bytes).digest('hex');
    const known = this.#state.get(agent, id);
    if (known !== undefined) {
      if (known.digest === digest) return { kind: 'replay', entry: known };
      throw new BridleError('REQUEST_CONFLICT', `${id} was handed in before with other content`);
    }
    if (this.#state.openOf(agent) >= this.#perAgent) {
      throw new BridleError('QUEUE_FULL', `${this.#perAgent} requests of agent "${agent}" are waiting or running`);
    }
    const { uid, gid, pid } = caller;
    const serial = this.#nextSerial();
    const entry = { agent, id, serial, digest, uid, gid, pid, ts: new Date().toISOString(), request };
    this.#write({ type: 'accepted', ...entry }, true);
    return { kind: 'accepted', entry };
  }

  /** The request has its session and its run. Again after a crash when recovery starts it anew. */
  start(agent: string, id: string, place: RunPlace): void {
    this.#write({ type: 'started', agent, id, session: place.session, run: place.run }, false);
  }

  /** The request has its response. Its content is no longer kept in memory. */
  finish(agent: string, id: string, result: Result): void {
    const { outcome, cause, stage } = result;
    this.#write({ type: 'finished', agent, id, result: { outcome, cause, stage } }, false);
  }

  get(agent: string, id: string): QueueEntry | undefined {
    return this.#state.get(agent, id);
  }

  /** Everything known of an agent's requests. */
  entries(agent: string): Iterable<QueueEntry> {
    return this.#state.entriesOf(agent);
  }

  /** What waits, in order of acceptance. */
  pending(): AcceptedRequest[] {
    return [...this.#state.unfinished()].flatMap((entry) => (entry.state === 'waiting' ? [entry.accepted] : []));
  }

  /** What was started and has no outcome, in order of acceptance. */
  running(): StartedRequest[] {
    return [...this.#state.unfinished()].flatMap((entry) =>
      entry.state === 'running' ? [{ ...entry.accepted, ...entry.place }] : [],
    );
  }

  #write(row: Exclude<QueueRow, { type: 'compacted' }>, now: boolean): void {
    const before = this.#state.get(row.agent, row.id)?.state;
    if (row.type !== 'accepted' && before !== 'waiting' && before !== 'running') {
      throw new BridleError('INTERNAL', `${row.agent}/${row.id} cannot be ${row.type}: it is ${before ?? 'unknown'}`);
    }
    // The log first: when it cannot be written nothing has changed.
    this.#journal.append(this.#target, toRow(row), { now });
    this.#state.fold(row);
  }
}
