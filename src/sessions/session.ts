import { BridleError } from '../contract/errors.js';
import type { EventBody, EventRow, MessageRow } from '../contract/events.js';
import type { HistoryMessage } from '../contract/harness.js';
import type { Terminal } from '../contract/terminal.js';
import type { Journal } from '../durable/journal.js';
import { lastRow, readRowsBackward, toRow } from '../durable/rows.js';
import { RunTurns } from './run-turns.js';

/** Identity of a session, as it stands in its index row and in its meta.json. */
export interface SessionMeta {
  readonly agent: string;
  readonly name: string;
  readonly serial: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
}

export interface TerminalRow {
  readonly ts: string;
  readonly terminal: Terminal;
}

/** Longest row of events.jsonl and messages.jsonl. */
export const MAX_ROW_BYTES = 16 * 1024 * 1024;
const MAX_HISTORY_MESSAGES = 200;
const MAX_HISTORY_BYTES = 1024 * 1024;

/**
 * One conversation: a directory of files that only this class changes, all through the journal. Numbers are given in
 * the same synchronous step as the append, so rows have them without gaps and in file order.
 */
export class Session {
  readonly agent: string;
  readonly name: string;
  readonly serial: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
  /** Absolute path. */
  readonly directory: string;
  readonly #journal: Journal;
  readonly #base: string;
  readonly #turns = new RunTurns();
  #eventSeq: number;
  #messageSeq: number;
  #cwd: string | undefined;

  private constructor(journal: Journal, meta: SessionMeta, eventSeq: number, messageSeq: number) {
    this.agent = meta.agent;
    this.name = meta.name;
    this.serial = meta.serial;
    this.created = meta.created;
    this.#journal = journal;
    this.#base = sessionTarget(meta.agent, meta.name);
    this.directory = journal.path(this.#base);
    this.#eventSeq = eventSeq;
    this.#messageSeq = messageSeq;
  }

  /**
   * Reads the ends of the files. Everything appended to them before must be durable.
   * @throws BridleError STATE_CORRUPT when a last row is damaged
   */
  static async open(journal: Journal, meta: SessionMeta): Promise<Session> {
    const base = sessionTarget(meta.agent, meta.name);
    const [eventSeq, messageSeq] = await Promise.all([
      lastSeq(journal.path(`${base}/events.jsonl`)),
      lastSeq(journal.path(`${base}/messages.jsonl`)),
    ]);
    return new Session(journal, meta, eventSeq, messageSeq);
  }

  /** A session that is made now: its files are empty, so nothing has to be read. */
  static create(journal: Journal, meta: SessionMeta): Session {
    return new Session(journal, meta, 0, 0);
  }

  /** No run has it or waits for it. */
  get idle(): boolean {
    return this.#turns.idle;
  }

  /** Resolves when the run has the session: one run at a time, in the order of the calls. */
  acquire(run: string, signal?: AbortSignal): Promise<void> {
    return this.#turns.acquire(run, signal);
  }

  /** @throws BridleError INTERNAL when the run does not have the session */
  release(run: string): void {
    this.#turns.release(run);
  }

  /**
   * Appends a row to events.jsonl.
   * @param copies targets that get the same bytes in the same journal record, at most 3
   * @throws BridleError INTERNAL when the row is longer than 16 MiB; no number is used up then
   */
  appendEvent(run: string, body: EventBody, copies: readonly string[] = []): EventRow {
    const row: EventRow = { seq: this.#eventSeq + 1, ts: new Date().toISOString(), run, ...body };
    this.#journal.append([`${this.#base}/events.jsonl`, ...copies], boundedRow(row));
    this.#eventSeq = row.seq;
    return row;
  }

  /** Appends a row to messages.jsonl; a text of the assistant also becomes latest.md. */
  appendMessage(run: string, role: MessageRow['role'], content: string): MessageRow {
    const row: MessageRow = { seq: this.#messageSeq + 1, ts: new Date().toISOString(), run, role, content };
    this.#journal.append(`${this.#base}/messages.jsonl`, boundedRow(row));
    this.#messageSeq = row.seq;
    if (role === 'assistant') this.#journal.put(`${this.#base}/latest.md`, `${content}\n`);
    return row;
  }

  /** Working directory that the newest run asked for; a session without this file has its own. */
  setCwd(path: string): void {
    if (path === this.#cwd) return;
    this.#cwd = path;
    this.#journal.put(`${this.#base}/cwd`, `${path}\n`);
  }

  /** Writes down the route of a run; `text` is the whole file. */
  writeRoute(run: string, text: string): void {
    this.#journal.put(`${this.#base}/runs/${run}/route.json`, text);
  }

  /** The newest whole messages, oldest first: at most 200 and 1 MiB of text. */
  async history(): Promise<HistoryMessage[]> {
    if (this.#messageSeq === 0) return [];
    await this.#journal.durable();
    const messages: HistoryMessage[] = [];
    let bytes = 0;
    const path = this.#journal.path(`${this.#base}/messages.jsonl`);
    for await (const row of readRowsBackward(path)) {
      if (!isRow<MessageRow>(row) || typeof row.content !== 'string') throw damaged(path);
      const { role, content } = row;
      bytes += Buffer.byteLength(content);
      if (bytes > MAX_HISTORY_BYTES) break;
      messages.push({ role, content });
      if (messages.length === MAX_HISTORY_MESSAGES) break;
    }
    return messages.reverse();
  }

  /** The terminal row of a run, or undefined when the run has none: it is always the last row of its run. */
  async terminalOf(run: string): Promise<TerminalRow | undefined> {
    await this.#journal.durable();
    const path = this.#journal.path(`${this.#base}/events.jsonl`);
    for await (const row of readRowsBackward(path)) {
      if (!isRow<EventRow>(row)) throw damaged(path);
      if (row.run !== run) continue;
      return row.type === 'run.terminal' ? { ts: row.ts, terminal: row.terminal } : undefined;
    }
    return undefined;
  }

  /** Resolves when everything appended before the call is on disk and in the files. */
  durable(): Promise<void> {
    return this.#journal.durable();
  }
}

export function sessionTarget(agent: string, name: string): string {
  return `agents/${agent}/sessions/${name}`;
}

function boundedRow(row: object): string {
  const text = toRow(row);
  if (text.length > MAX_ROW_BYTES || Buffer.byteLength(text) > MAX_ROW_BYTES) {
    throw new BridleError('INTERNAL', `a row of more than ${MAX_ROW_BYTES} bytes cannot be kept`);
  }
  return text;
}

async function lastSeq(path: string): Promise<number> {
  const row = await lastRow(path);
  if (row === undefined) return 0;
  if (!isRow<EventRow | MessageRow>(row)) throw damaged(path);
  return row.seq;
}

/** Rows were checked when they were written; what is looked at here is what is needed to trust their place. */
function isRow<Row extends { readonly seq: number; readonly run: string }>(value: unknown): value is Row {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, run } = value as { readonly seq?: unknown; readonly run?: unknown };
  return typeof seq === 'number' && Number.isSafeInteger(seq) && seq > 0 && typeof run === 'string';
}

function damaged(path: string): BridleError {
  return new BridleError('STATE_CORRUPT', `${path}: a row is damaged`);
}
