import { randomBytes } from 'node:crypto';
import { BridleError } from '../contract/errors.js';
import { agentNameSchema, sessionNameSchema } from '../contract/names.js';
import type { Journal } from '../durable/journal.js';
import { Session, type SessionMeta, sessionTarget } from './session.js';
import { SessionIndex, type SessionIndexRow } from './session-index.js';

export interface SessionStoreOptions {
  /** Sessions kept in memory that no run uses. Default 1024. */
  readonly maxIdle?: number;
}

/** The sessions of all agents. A session that is open is one object, whoever asks for it. */
export class SessionStore {
  readonly #journal: Journal;
  readonly #nextSerial: () => number;
  readonly #maxIdle: number;
  /** By agent and name, least recently opened first. */
  readonly #sessions = new Map<string, Session>();
  readonly #opening = new Map<string, Promise<Session>>();
  /** Sessions that were forgotten: whoever still holds one must not meet a second object for the same files. */
  readonly #forgotten = new Map<string, WeakRef<Session>>();
  readonly #collected = new FinalizationRegistry<string>((key) => {
    if (this.#forgotten.get(key)?.deref() === undefined) this.#forgotten.delete(key);
  });
  readonly #indexes = new Map<string, Promise<SessionIndex>>();

  /** @param nextSerial gives each new session its number */
  constructor(journal: Journal, nextSerial: () => number, options: SessionStoreOptions = {}) {
    this.#journal = journal;
    this.#nextSerial = nextSerial;
    this.#maxIdle = options.maxIdle ?? 1024;
  }

  /**
   * Opens a session and makes it when there is none of this name; without a name a new one is made.
   * @throws BridleError STATE_CORRUPT when its files are damaged: other sessions are not affected
   */
  async open(agent: string, name: string = newName()): Promise<Session> {
    if (!agentNameSchema.safeParse(agent).success || !sessionNameSchema.safeParse(name).success) {
      throw new BridleError('INTERNAL', `${JSON.stringify(`${agent}/${name}`)} cannot be a session`);
    }
    const key = `${agent}/${name}`;
    const known = this.#sessions.get(key) ?? this.#forgotten.get(key)?.deref();
    if (known !== undefined) {
      this.#keep(key, known);
      return known;
    }
    let opening = this.#opening.get(key);
    if (opening === undefined) {
      opening = this.#load(agent, name).finally(() => this.#opening.delete(key));
      this.#opening.set(key, opening);
    }
    const session = await opening;
    this.#keep(key, session);
    return session;
  }

  /** The sessions of an agent in order of creation. */
  async list(agent: string): Promise<readonly SessionIndexRow[]> {
    return (await this.#index(agent)).list();
  }

  /** Calls with agent and session, from now on, whenever rows of its events.jsonl are on disk and in the file. */
  onEvents(listener: (agent: string, session: string) => void): void {
    this.#journal.onApplied((targets) => {
      for (const target of targets) {
        const [agents, agent = '', sessions, session = '', file, ...more] = target.split('/');
        const isLog = agents === 'agents' && sessions === 'sessions' && file === 'events.jsonl' && more.length === 0;
        if (isLog) listener(agent, session);
      }
    });
  }

  async #load(agent: string, name: string): Promise<Session> {
    const index = await this.#index(agent);
    const row = index.get(name);
    if (row !== undefined) {
      await this.#journal.durable();
      return Session.open(this.#journal, { agent, ...row });
    }
    const base = sessionTarget(agent, name);
    const left = await index.unlisted(name);
    const meta: SessionMeta = { agent, ...(left ?? { name, serial: this.#nextSerial(), created: Date.now() }) };
    if (left !== undefined && this.#journal.size(`${base}/events.jsonl`) > 0) {
      index.add(meta);
      await this.#journal.durable();
      return Session.open(this.#journal, meta);
    }
    this.#journal.put(`${base}/meta.json`, `${JSON.stringify({ schema: 'bridle.session/v1', ...meta })}\n`);
    this.#journal.append([`${base}/events.jsonl`, `${base}/messages.jsonl`], '');
    // The row that makes it a session comes last: without it the next start makes it again.
    index.add(meta);
    return Session.create(this.#journal, meta);
  }

  #index(agent: string): Promise<SessionIndex> {
    let index = this.#indexes.get(agent);
    if (index === undefined) {
      index = SessionIndex.open(this.#journal, agent);
      this.#indexes.set(agent, index);
      index.catch(() => this.#indexes.delete(agent));
    }
    return index;
  }

  /** Makes a session the most recent one and forgets the oldest that no run uses when there are too many. */
  #keep(key: string, session: Session): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    this.#forgotten.delete(key);
    if (this.#sessions.size <= this.#maxIdle) return;
    for (const [oldKey, old] of this.#sessions) {
      if (old === session || !old.idle) continue;
      this.#sessions.delete(oldKey);
      this.#forgotten.set(oldKey, new WeakRef(old));
      this.#collected.register(old, oldKey);
      return;
    }
  }
}

/** A name that sorts by time. */
function newName(): string {
  const time = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15);
  return `${time}-${randomBytes(4).toString('hex')}`;
}
