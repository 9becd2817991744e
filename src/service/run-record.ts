import { join } from 'node:path';
import type { AuditFact } from '../audit/audit-row.js';
import type { EventBody, HarnessEvent } from '../contract/events.js';
import type { RouteDecision } from '../contract/route.js';
import type { Response, Terminal } from '../contract/terminal.js';
import type { Journal } from '../durable/journal.js';
import type { AcceptedRequest, Queue } from '../queue/queue.js';
import type { Session } from '../sessions/session.js';

/** Name of the run of a request: derived from the serial they share, so it is the same after a crash. */
function runName(serial: number): string {
  return `r-${serial.toString(36)}`;
}

/** The session a request belongs to: the one it names, else one of its own. */
export function sessionName(entry: AcceptedRequest): string {
  return entry.request.session ?? `s-${entry.serial.toString(36)}`;
}

/** Working directory of the runs of a session that name none. */
export function ownDirectory(stateDir: string, agent: string, session: string): string {
  return join(stateDir, 'work', agent, session);
}

function outboxTarget(agent: string, id: string, kind: 'resp.json' | 'events.jsonl'): string {
  return `agents/${agent}/outbox/${id}.${kind}`;
}

/** The audit row of an answer. It stands before the row that ends the request in the queue. */
export function answeredFact(record: RunRecord, { outcome, cause }: Terminal): AuditFact {
  const { request, session, run } = record;
  const place = { agent: request.agent, request: request.id, session: session.name, run };
  return { type: 'request.answered', ...place, outcome, cause };
}

/** The audit row of an acceptance. */
export function acceptedFact({ agent, id, uid, pid, digest }: AcceptedRequest): AuditFact {
  return { type: 'request.accepted', agent, request: id, uid, pid, digest };
}

/**
 * Everything that is written down about one run, in its session, its outbox and the queue. All of it goes through the
 * one journal in the order of the calls, so after a crash a prefix of it is there.
 */
export class RunRecord {
  readonly request: AcceptedRequest;
  readonly session: Session;
  readonly run: string;
  readonly #journal: Journal;
  readonly #queue: Queue;
  readonly #outbox: readonly string[];
  #route: RouteDecision | undefined;
  #cwd = '';
  #startedAt = Date.now();

  constructor(request: AcceptedRequest, session: Session, journal: Journal, queue: Queue) {
    this.request = request;
    this.session = session;
    this.run = runName(request.serial);
    this.#journal = journal;
    this.#queue = queue;
    this.#outbox = [outboxTarget(request.agent, request.id, 'events.jsonl')];
  }

  get durationMs(): number {
    return Date.now() - this.#startedAt;
  }

  /** Working directory of the run, absolute. */
  get cwd(): string {
    return this.#cwd;
  }

  get route(): RouteDecision | undefined {
    return this.#route;
  }

  /** Recovery: the route that the run had taken before its daemon died. */
  recallRoute(route: RouteDecision): void {
    this.#route = route;
  }

  /** The run has its session and may begin. @param cwd its working directory, absolute */
  begun(cwd: string): void {
    const { agent, id, uid, digest } = this.request;
    this.#startedAt = Date.now();
    this.#queue.start(agent, id, { session: this.session.name, run: this.run });
    this.#cwd = cwd;
    if (this.request.request.cwd !== undefined) this.session.setCwd(cwd);
    this.#append({ type: 'run.accepted', request: id, uid, digest });
  }

  routed(route: RouteDecision): void {
    this.#route = route;
    this.session.writeRoute(this.run, `${JSON.stringify(route)}\n`);
    this.#append({ type: 'run.routed', route });
  }

  started(prompt: string): void {
    this.session.appendMessage(this.run, 'user', prompt);
    this.#append({ type: 'run.started', harness: this.#route?.harness ?? '' });
  }

  event(event: Exclude<HarnessEvent, { type: 'final' }>): void {
    this.#append(event);
  }

  /** The one terminal fact. The answer text stands before it, so that a terminal row means that all is there. */
  terminal(terminal: Terminal): void {
    if (terminal.text !== '') this.session.appendMessage(this.run, 'assistant', terminal.text);
    this.#append({ type: 'run.terminal', terminal });
  }

  /** What follows from the terminal fact; recovery repeats it when a crash came between. */
  respond(terminal: Terminal, finishedAt: string): Response {
    const { agent, id } = this.request;
    const response: Response = {
      schema: 'bridle.response/v1',
      id,
      agent,
      session: this.session.name,
      run: this.run,
      harness: this.#route?.harness ?? null,
      model: this.#route?.model ?? null,
      acceptedAt: this.request.ts,
      finishedAt,
      metadata: this.request.request.metadata ?? {},
      ...terminal,
    };
    const { outcome, cause, stage } = terminal;
    this.#journal.put(outboxTarget(agent, id, 'resp.json'), `${JSON.stringify(response)}\n`);
    this.#queue.finish(agent, id, { outcome, cause, stage });
    return response;
  }

  #append(body: EventBody): void {
    this.session.appendEvent(this.run, body, this.#outbox);
  }
}
