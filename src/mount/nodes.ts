import { join } from 'node:path';
import type { Change, Inode, Node } from '../native/fuse.js';
import { type Agent, CONTROL_NAMES, type ControlName, controlText } from '../service/agents.js';
import { agentInodes, requestInodes, sessionInodes } from './inodes.js';

type FileNode = Extract<Node, { kind: 'file' }>;
type BytesNode = Extract<Node, { kind: 'bytes' }>;

/** Who owns a node and when it came to be. */
export interface Ownership {
  readonly uid: number;
  readonly gid: number;
  readonly time: number;
}

export function directory(inode: Inode, owner: Ownership, mode: number): Node {
  return { kind: 'directory', inode, mode, ...pick(owner) };
}

export function bytes(inode: Inode, owner: Ownership, text: string, mode: number): BytesNode {
  return { kind: 'bytes', inode, mode, ...pick(owner), bytes: Buffer.from(text) };
}

export function file(inode: Inode, owner: Ownership, path: string, mode: number): FileNode {
  return { kind: 'file', inode, mode, ...pick(owner), path };
}

/** The rows of a log as they come. */
function follow(inode: Inode, owner: Ownership, path: string): Node {
  return { kind: 'follow', inode, mode: 0o400, ...pick(owner), path };
}

export function put<T extends Node>(parent: Inode, name: string, node: T): Change & { readonly node: T } {
  return { op: 'put', parent, name, node };
}

function pick({ uid, gid, time }: Ownership): Ownership {
  return { uid, gid, time };
}

export function agentOwnership(agent: Agent): Ownership {
  return { uid: agent.uid, gid: agent.gid, time: agent.created };
}

export function controlNode(agent: Agent, control: ControlName, time: number): Change {
  const inodes = agentInodes(agent.serial);
  const inode = { model: inodes.model, harness: inodes.harness, 'system.md': inodes.system }[control];
  const text = Buffer.from(controlText(control, agent.controls[control]));
  const node: Node = { kind: 'control', inode, mode: 0o600, ...agentOwnership(agent), time, bytes: text };
  return put(inodes.directory, control, node);
}

/** `agents/<a>/` with its controls, inbox, outbox and sessions. */
export function agentNodes(stateDir: string, agents: Inode, agent: Agent): Change[] {
  const inodes = agentInodes(agent.serial);
  const owner = agentOwnership(agent);
  const inbox: Node = {
    kind: 'inbox',
    inode: inodes.inbox,
    mode: 0o700,
    ...owner,
    path: join(stateDir, 'agents', agent.name, 'inbox'),
  };
  return [
    put(agents, agent.name, directory(inodes.directory, owner, 0o700)),
    ...CONTROL_NAMES.map((control) => controlNode(agent, control, agent.created)),
    put(inodes.directory, 'inbox', inbox),
    put(inodes.directory, 'outbox', directory(inodes.outbox, owner, 0o500)),
    put(inodes.directory, 'sessions', directory(inodes.sessions, owner, 0o500)),
  ];
}

const SESSION_FILES = {
  messages: 'messages.jsonl',
  events: 'events.jsonl',
  meta: 'meta.json',
} as const;

/** `sessions/<s>/`. */
export function sessionNodes(stateDir: string, agent: Agent, session: SessionPlace): Change[] {
  const inodes = sessionInodes(session.serial);
  const owner = { ...agentOwnership(agent), time: session.created };
  const base = join(stateDir, 'agents', agent.name, 'sessions', session.name);
  const files = Object.entries(SESSION_FILES) as [keyof typeof SESSION_FILES, string][];
  return [
    put(agentInodes(agent.serial).sessions, session.name, directory(inodes.directory, owner, 0o500)),
    ...files.map(([key, name]) => put(inodes.directory, name, file(inodes[key], owner, join(base, name), 0o400))),
    put(inodes.directory, 'follow', follow(inodes.follow, owner, join(base, SESSION_FILES.events))),
    put(inodes.directory, 'runs', directory(inodes.runs, owner, 0o500)),
  ];
}

/** `sessions/<s>/state`: idle, active, or error when the last run did not succeed. */
export function sessionStateNode(agent: Agent, session: SessionPlace, state: 'idle' | 'active' | 'error'): Change {
  const inodes = sessionInodes(session.serial);
  const owner = { ...agentOwnership(agent), time: session.created };
  return put(inodes.directory, 'state', bytes(inodes.state, owner, `${state}\n`, 0o400));
}

export interface SessionPlace {
  readonly name: string;
  readonly serial: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
}

/** `sessions/<s>/cwd`: working directory of the newest run. */
export function sessionCwdNode(agent: Agent, session: SessionPlace, cwd: string): Change {
  const inodes = sessionInodes(session.serial);
  const owner = { ...agentOwnership(agent), time: session.created };
  return put(inodes.directory, 'cwd', bytes(inodes.cwd, owner, `${cwd}\n`, 0o400));
}

/** `latest.md`, which a session has from its first answer on. */
export function latestNode(
  stateDir: string,
  agent: Agent,
  session: SessionPlace,
): Change & { readonly node: FileNode } {
  const inodes = sessionInodes(session.serial);
  const owner = { ...agentOwnership(agent), time: session.created };
  const path = join(stateDir, 'agents', agent.name, 'sessions', session.name, 'latest.md');
  return put(inodes.directory, 'latest.md', file(inodes.latest, owner, path, 0o400));
}

export interface RunPlace {
  readonly serial: number;
  readonly id: string;
  readonly run: string;
  readonly session: SessionPlace;
}

/** `sessions/<s>/runs/<r>/` and the outbox files of a request that has begun. */
export function runNodes(stateDir: string, agent: Agent, place: RunPlace, routed: boolean): Change[] {
  const inodes = requestInodes(place.serial);
  const owner = { ...agentOwnership(agent), time: place.session.created };
  const { run, outbox } = backing(stateDir, agent, place);
  const outboxInode = agentInodes(agent.serial).outbox;
  const changes = [
    put(sessionInodes(place.session.serial).runs, place.run, directory(inodes.run, owner, 0o500)),
    put(inodes.run, 'state', bytes(inodes.state, owner, 'active\n', 0o400)),
    put(outboxInode, `${place.id}.events.jsonl`, file(inodes.outboxEvents, owner, `${outbox}.events.jsonl`, 0o400)),
  ];
  if (!routed) return changes;
  const route = `${run}/route.json`;
  return [
    ...changes,
    put(inodes.run, 'route.json', file(inodes.route, owner, route, 0o400)),
    put(outboxInode, `${place.id}.route.json`, file(inodes.outboxRoute, owner, route, 0o400)),
  ];
}

/** What appears when the run has ended. */
export function responseNodes(stateDir: string, agent: Agent, place: RunPlace, outcome: string): Change[] {
  const inodes = requestInodes(place.serial);
  const owner = { ...agentOwnership(agent), time: place.session.created };
  // The response holds the terminal fact: one file is both.
  const response = `${backing(stateDir, agent, place).outbox}.resp.json`;
  const outboxInode = agentInodes(agent.serial).outbox;
  return [
    put(inodes.run, 'state', bytes(inodes.state, owner, `${outcome}\n`, 0o400)),
    put(inodes.run, 'terminal.json', file(inodes.terminal, owner, response, 0o400)),
    put(outboxInode, `${place.id}.resp.json`, file(inodes.response, owner, response, 0o400)),
  ];
}

/** Where the files of a run lie in the state directory: its own directory, and the stem of its outbox files. */
function backing(stateDir: string, agent: Agent, place: RunPlace): { run: string; outbox: string } {
  const home = join(stateDir, 'agents', agent.name);
  return {
    run: join(home, 'sessions', place.session.name, 'runs', place.run),
    outbox: join(home, 'outbox', place.id),
  };
}
