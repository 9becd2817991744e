import type { AuditFact } from '../audit/audit-row.js';
import { BridleError, toBridleError } from '../contract/errors.js';
import type { Caller } from '../contract/identity.js';
import { MAX_REQUEST_BYTES, requestIdOf } from '../contract/names.js';
import { parseRequest } from '../contract/request.js';
import type { Response } from '../contract/terminal.js';
import type { AcceptedRequest } from '../queue/queue.js';
import { type Agent, type Agents, type ControlName, parseControl } from './agents.js';
import { execute } from './execution.js';
import { recoverRuns } from './recovery.js';
import { acceptedFact, answeredFact, ownDirectory, RunRecord, sessionName } from './run-record.js';
import { Scheduler } from './scheduler.js';
import type { ServiceDeps } from './service-deps.js';
import { StopSignal } from './stop-signal.js';
import { terminalOf } from './terminal.js';

/** What a door is told, after it is on disk. */
export interface ServiceObserver {
  agentCreated(agent: Agent): void;
  controlChanged(agent: Agent, control: ControlName): void;
  runStarted(record: RunRecord): void;
  responded(record: RunRecord, response: Response): void;
}

export interface ServiceCounts {
  readonly agents: number;
  readonly waiting: number;
  readonly running: number;
  readonly answered: number;
}

const DEFAULT_TIMEOUT_MS = 3_600_000;

/**
 * Accepts requests, runs them and answers them. Doors call it and watch it; none of them owns history. Acceptance is
 * synchronous: when accept() returns, the request survives the death of every process.
 */
export class Service {
  readonly #deps: ServiceDeps;
  readonly #scheduler: Scheduler;
  readonly #observers = new Set<ServiceObserver>();
  readonly #running = new Set<StopSignal>();
  #answered = 0;
  #leftOver: readonly AcceptedRequest[] = [];
  #stopping = false;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#scheduler = new Scheduler(deps.maxRuns);
  }

  get agents(): Agents {
    return this.#deps.agents;
  }

  observe(observer: ServiceObserver): void {
    this.#observers.add(observer);
  }

  counts(): ServiceCounts {
    const running = this.#scheduler.active;
    const waiting = this.#deps.queue.open - running;
    return { agents: [...this.agents.all()].length, waiting, running, answered: this.#answered };
  }

  /**
   * Takes a request file into the queue. The same id with the same content is accepted again without effect.
   *
   * @param bytes the file, or null when it is larger than MAX_REQUEST_BYTES
   * @returns whether the request waits or runs now, or was answered before
   * @throws BridleError with the reason of a refusal; nothing has changed then, but the refusal is audited
   */
  accept(agentName: string, fileName: string, bytes: Uint8Array | null, caller: Caller): 'open' | 'answered' {
    try {
      return this.#accept(agentName, fileName, bytes, caller);
    } catch (thrown) {
      const error = toBridleError(thrown);
      const { uid, pid } = caller;
      const request = fileName.slice(0, 256);
      this.#audit({ type: 'request.refused', agent: agentName, request, uid, pid, code: error.code });
      throw error;
    }
  }

  #accept(agentName: string, fileName: string, bytes: Uint8Array | null, caller: Caller): 'open' | 'answered' {
    if (this.#stopping) throw new BridleError('SHUTTING_DOWN', 'the daemon is stopping');
    const agent = this.agents.get(agentName);
    if (agent === undefined) throw new BridleError('AGENT_UNKNOWN', `there is no agent "${agentName}"`);
    requireOwner(agent, caller);
    const id = requestIdOf(fileName);
    if (id === undefined) throw new BridleError('REQUEST_NAME_INVALID', `${JSON.stringify(fileName)} names no request`);
    if (bytes === null || bytes.length > MAX_REQUEST_BYTES) {
      throw new BridleError('REQUEST_TOO_LARGE', `the request is larger than ${MAX_REQUEST_BYTES} bytes`);
    }
    const request = parseRequest(bytes);
    if (request.harness !== undefined && !this.#deps.harnesses.has(request.harness)) {
      throw new BridleError('HARNESS_UNKNOWN', `there is no harness "${request.harness}"`, { path: 'harness' });
    }

    const result = this.#deps.queue.accept({ agent: agentName, id, bytes, request, caller });
    if (result.kind === 'replay') {
      const { uid, pid } = caller;
      const { digest } = result.entry;
      this.#audit({ type: 'request.replayed', agent: agentName, request: id, uid, pid, digest });
      return result.entry.state === 'finished' ? 'answered' : 'open';
    }
    this.#audit(acceptedFact(result.entry));
    this.#schedule(result.entry);
    return 'open';
  }

  /** Resolves when everything that was accepted before the call is on disk. */
  durable(): Promise<void> {
    return this.#deps.journal.durable();
  }

  /** @throws BridleError AGENT_NAME_INVALID, AGENT_EXISTS, NOT_OWNER */
  createAgent(name: string, caller: Caller): Agent {
    // Until runs can take their owner's uid, an agent of somebody else would run with the daemon's rights.
    if (caller.uid !== process.getuid?.()) {
      throw new BridleError('NOT_OWNER', 'only the user of the daemon may make agents');
    }
    const agent = this.agents.create({ name, uid: caller.uid, gid: caller.gid });
    this.#audit({ type: 'agent.created', agent: name, uid: caller.uid, pid: caller.pid });
    for (const observer of this.#observers) observer.agentCreated(agent);
    return agent;
  }

  /** @throws BridleError AGENT_UNKNOWN, NOT_OWNER, CONTROL_INVALID, CONTROL_TOO_LARGE */
  setControl(agentName: string, control: ControlName, bytes: Uint8Array, caller: Caller): void {
    const agent = this.agents.get(agentName);
    if (agent === undefined) throw new BridleError('AGENT_UNKNOWN', `there is no agent "${agentName}"`);
    requireOwner(agent, caller);
    const changed = this.agents.setControl(agentName, control, parseControl(control, bytes));
    this.#audit({ type: 'control.changed', agent: agentName, control, uid: caller.uid, pid: caller.pid });
    for (const observer of this.#observers) observer.controlChanged(changed, control);
  }

  /**
   * Brings order after a crash: ends what a dead daemon left running and writes the terminal facts it could not write.
   * Call once, before any door opens.
   */
  async recover(): Promise<void> {
    const { again } = await recoverRuns(this.#deps);
    this.#leftOver = [...again, ...this.#deps.queue.pending()];
  }

  /** Runs what an earlier daemon accepted and did not finish. Call once, when the doors are open. */
  start(): void {
    for (const entry of this.#leftOver) this.#schedule(entry);
    this.#leftOver = [];
  }

  /** Accepts nothing more, stops the running ones, and resolves when each has its terminal fact on disk. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const stop of this.#running) stop.stop('shutdown');
    await this.#scheduler.stop();
  }

  /** Adds a row that survives the death of this process on return. */
  #audit(fact: AuditFact): void {
    this.#deps.audit.append(fact);
    this.#deps.journal.flushNow();
  }

  #schedule(entry: AcceptedRequest): void {
    this.#scheduler.add(`${entry.agent}/${sessionName(entry)}`, async () => {
      try {
        await this.#run(entry);
      } catch (error) {
        this.#deps.onFatal(error as Error);
      }
    });
  }

  async #run(entry: AcceptedRequest): Promise<void> {
    const { journal, queue, sessions, log } = this.#deps;
    const agent = this.agents.get(entry.agent);
    if (agent === undefined) throw new BridleError('STATE_CORRUPT', `agents/${entry.agent}: the agent is missing`);
    const session = await sessions.open(entry.agent, sessionName(entry));
    const record = new RunRecord(entry, session, journal, queue);
    await session.acquire(record.run);
    const cwd = entry.request.cwd ?? ownDirectory(this.#deps.stateDir, agent.name, session.name);
    record.begun(cwd);

    const { timeoutMs: wallMs = DEFAULT_TIMEOUT_MS, idleTimeoutMs: idleMs } = entry.request;
    using stop = new StopSignal({ wallMs, idleMs });
    this.#running.add(stop);
    const begin = async () => {
      await journal.durable();
      for (const observer of this.#observers) observer.runStarted(record);
    };
    const { evidence, cleanup } = await execute(
      { request: entry.request, agent, record, cwd, stop },
      { ...this.#deps, begin },
    );
    this.#running.delete(stop);

    const terminal = terminalOf(evidence, cleanup, record.durationMs);
    record.terminal(terminal);
    this.#deps.audit.append(answeredFact(record, terminal));
    const response = record.respond(terminal, new Date().toISOString());
    session.release(record.run);
    await journal.durable();
    this.#answered += 1;
    log.info({ ...answeredFact(record, terminal), durationMs: terminal.durationMs }, 'run ended');
    for (const observer of this.#observers) observer.responded(record, response);
  }
}

function requireOwner(agent: Agent, caller: Caller): void {
  if (caller.uid !== agent.uid && caller.uid !== 0) {
    throw new BridleError('NOT_OWNER', `agent "${agent.name}" belongs to uid ${agent.uid}`);
  }
}
