import { existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { BridleError } from '../contract/errors.js';
import { REQUEST_SUFFIX, requestIdOf } from '../contract/names.js';
import type { Response } from '../contract/terminal.js';
import type { Change, FuseSession, Inode } from '../native/fuse.js';
import type { Queue, QueueEntry } from '../queue/queue.js';
import type { Agent, Agents, ControlName } from '../service/agents.js';
import { ownDirectory, type RunRecord } from '../service/run-record.js';
import type { ServiceObserver } from '../service/service.js';
import type { SessionIndexRow } from '../sessions/session-index.js';
import type { SessionStore } from '../sessions/session-store.js';
import { agentInodes, ROOT, requestInodes, sessionInodes } from './inodes.js';
import {
  agentNodes,
  agentOwnership,
  bytes,
  controlNode,
  latestNode,
  put,
  type RunPlace,
  responseNodes,
  runNodes,
  sessionCwdNode,
  sessionNodes,
  sessionStateNode,
} from './nodes.js';

/** The newest refusals of an agent that its outbox shows; an older one makes room. */
const MAX_REFUSALS = 256;

export interface ProjectionDeps {
  readonly stateDir: string;
  readonly agents: Agents;
  readonly queue: Queue;
  readonly sessions: SessionStore;
  readonly nextSerial: () => number;
}

/**
 * Keeps the node table equal to the durable state: built once at start, then changed with every notice of the service.
 * It holds no history of its own; all but refusals is rebuilt from the state directory.
 */
export class Projection implements ServiceObserver {
  readonly #deps: ProjectionDeps;
  #session: FuseSession | undefined;
  #pending: Change[] = [];
  /** Serials of the sessions that are shown, by agent and name. */
  readonly #sessions = new Map<string, number>();
  readonly #refusals = new Map<string, Map<string, Inode>>();
  readonly #byInode = new Map<Inode, { agent: string; part: 'inbox' | ControlName }>();

  constructor(deps: ProjectionDeps) {
    this.#deps = deps;
  }

  /** The tree as it stands: call once, before attach(). */
  async build(): Promise<void> {
    for (const agent of this.#deps.agents.all()) {
      this.#prepareAgent(agent);
      this.#add(agentNodes(this.#deps.stateDir, ROOT.agents, agent));
      const sessions = await this.#deps.sessions.list(agent.name);
      for (const session of sessions) {
        this.#addSession(agent, session);
        const latest = latestNode(this.#deps.stateDir, agent, session);
        if (existsSync(latest.node.path)) this.#add([latest]);
        this.#add([
          sessionStateNode(agent, session, 'idle'),
          sessionCwdNode(agent, session, this.#cwdOf(agent, session.name)),
        ]);
      }
      const byName = new Map(sessions.map((session) => [session.name, session]));
      for (const entry of this.#deps.queue.entries(agent.name)) this.#addRequest(agent, entry, byName);
    }
  }

  /** From here on changes go to the mount. */
  attach(session: FuseSession): void {
    this.#session = session;
    this.#flush();
  }

  /** What an inode that JavaScript is asked about stands for. */
  find(inode: Inode): { agent: string; part: 'inbox' | ControlName } | undefined {
    return this.#byInode.get(inode);
  }

  publish(changes: readonly Change[]): void {
    this.#add(changes);
    this.#flush();
  }

  agentCreated(agent: Agent): void {
    this.#prepareAgent(agent);
    this.publish(agentNodes(this.#deps.stateDir, ROOT.agents, agent));
  }

  controlChanged(agent: Agent, control: ControlName): void {
    this.publish([controlNode(agent, control, Date.now())]);
  }

  /** The log of a session grew. */
  eventsRecorded(agent: string, session: string): void {
    const serial = this.#sessions.get(`${agent}/${session}`);
    if (serial !== undefined) this.publish([{ op: 'grow', inode: sessionInodes(serial).follow }]);
  }

  runStarted(record: RunRecord): void {
    const agent = this.#deps.agents.get(record.request.agent);
    if (agent === undefined) return;
    this.#addSession(agent, record.session);
    this.#add([
      sessionStateNode(agent, record.session, 'active'),
      sessionCwdNode(agent, record.session, record.cwd),
      ...runNodes(this.#deps.stateDir, agent, placeOf(record), record.route !== undefined),
    ]);
    this.#dropRefusal(agent, record.request.id);
    this.#flush();
  }

  responded(record: RunRecord, response: Response): void {
    const { agent: name, id } = record.request;
    const agent = this.#deps.agents.get(name);
    if (agent === undefined) return;
    this.#add(responseNodes(this.#deps.stateDir, agent, placeOf(record), response.outcome));
    this.#add([sessionStateNode(agent, record.session, response.outcome === 'success' ? 'idle' : 'error')]);
    if (response.text !== '') this.#add([latestNode(this.#deps.stateDir, agent, record.session)]);
    this.settled(name, `${id}${REQUEST_SUFFIX}`);
  }

  /** The request has its answer: its file leaves the inbox. */
  settled(agentName: string, fileName: string): void {
    const agent = this.#deps.agents.get(agentName);
    if (agent === undefined) return;
    this.publish([{ op: 'consume', parent: agentInodes(agent.serial).inbox, name: fileName }]);
  }

  /** Shows why a request was refused, until it is accepted, or MAX_REFUSALS newer ones came, or the daemon restarts. */
  refused(agentName: string, fileName: string, error: BridleError): void {
    const agent = this.#deps.agents.get(agentName);
    const id = requestIdOf(fileName);
    if (agent === undefined || id === undefined) return;
    const refusals = this.#refusals.get(agentName) ?? new Map<string, Inode>();
    this.#refusals.set(agentName, refusals);
    const inode = refusals.get(id) ?? requestInodes(this.#deps.nextSerial()).error;
    const oldest = refusals.keys().next().value;
    if (oldest !== undefined && refusals.size >= MAX_REFUSALS && !refusals.has(id)) this.#dropRefusal(agent, oldest);
    refusals.set(id, inode);
    const text = `${JSON.stringify({ schema: 'bridle.error/v1', id, ...error.toBody() })}\n`;
    const owner = { ...agentOwnership(agent), time: Date.now() };
    this.publish([put(agentInodes(agent.serial).outbox, `${id}.error.json`, bytes(inode, owner, text, 0o400))]);
  }

  #dropRefusal(agent: Agent, id: string): void {
    if (!this.#refusals.get(agent.name)?.delete(id)) return;
    this.#pending.push({ op: 'remove', parent: agentInodes(agent.serial).outbox, name: `${id}.error.json` });
  }

  /** Backing directories, and the inbox cleared of what was answered before a crash could clear it. */
  #prepareAgent(agent: Agent): void {
    const home = join(this.#deps.stateDir, 'agents', agent.name);
    const inbox = join(home, 'inbox');
    mkdirSync(inbox, { recursive: true, mode: 0o700 });
    mkdirSync(join(home, 'outbox'), { recursive: true, mode: 0o700 });
    for (const name of readdirSync(inbox)) {
      const id = requestIdOf(name);
      if (id === undefined) continue;
      const entry = this.#deps.queue.get(agent.name, id);
      if (entry === undefined || entry.state === 'finished') unlinkSync(join(inbox, name));
    }
    const inodes = agentInodes(agent.serial);
    this.#byInode.set(inodes.inbox, { agent: agent.name, part: 'inbox' });
    this.#byInode.set(inodes.model, { agent: agent.name, part: 'model' });
    this.#byInode.set(inodes.harness, { agent: agent.name, part: 'harness' });
    this.#byInode.set(inodes.system, { agent: agent.name, part: 'system.md' });
  }

  #addSession(agent: Agent, session: { name: string; serial: number; created: number }): void {
    const key = `${agent.name}/${session.name}`;
    if (this.#sessions.has(key)) return;
    this.#sessions.set(key, session.serial);
    this.#add(sessionNodes(this.#deps.stateDir, agent, session));
  }

  #addRequest(agent: Agent, entry: QueueEntry, sessions: ReadonlyMap<string, SessionIndexRow>): void {
    if (entry.state === 'waiting') return;
    const { serial, id, place } = entry;
    const session = sessions.get(place.session);
    if (session === undefined) return;
    const runPlace = { serial, id, run: place.run, session };
    const { stateDir } = this.#deps;
    const route = join(stateDir, 'agents', agent.name, 'sessions', session.name, 'runs', place.run, 'route.json');
    this.#add(runNodes(stateDir, agent, runPlace, existsSync(route)));
    if (entry.state !== 'finished') return;
    const { outcome } = entry.result;
    this.#add(responseNodes(stateDir, agent, runPlace, outcome));
    this.#add([sessionStateNode(agent, session, outcome === 'success' ? 'idle' : 'error')]);
  }

  /** The session's file when a run named a directory, else the session's own directory. */
  #cwdOf(agent: Agent, session: string): string {
    const file = join(this.#deps.stateDir, 'agents', agent.name, 'sessions', session, 'cwd');
    return existsSync(file)
      ? readFileSync(file, 'utf8').trimEnd()
      : ownDirectory(this.#deps.stateDir, agent.name, session);
  }

  #add(changes: readonly Change[]): void {
    for (const change of changes) this.#pending.push(change);
  }

  #flush(): void {
    if (this.#session === undefined || this.#pending.length === 0) return;
    this.#session.publish(this.#pending);
    this.#pending = [];
  }
}

function placeOf(record: RunRecord): RunPlace {
  const { serial, id } = record.request;
  return { serial, id, run: record.run, session: record.session };
}
