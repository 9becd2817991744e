import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BridleError } from '../../contract/errors.js';

export interface SessionSummary {
  readonly agent: string;
  readonly session: string;
  readonly state: string;
  readonly runs: number;
  /** Time of the newest event, ISO 8601 in UTC. */
  readonly updatedAt: string;
}

/**
 * Sessions seen through the mount, newest first.
 * @throws BridleError AGENT_UNKNOWN
 */
export async function listSessions(mount: string, agent: string | undefined): Promise<SessionSummary[]> {
  const agents = agent === undefined ? await readdir(join(mount, 'agents')) : [agent];
  const lists = await Promise.all(
    agents.map(async (name) => {
      const sessions = await sessionNames(mount, name);
      return await Promise.all(sessions.map((session) => summarize(mount, name, session)));
    }),
  );
  return lists.flat().sort((a, b) => b.updatedAt.localeCompare(a.updatedAt));
}

/**
 * Directory of a session; looked for in every agent when none is named.
 * @throws BridleError SESSION_UNKNOWN, also when several agents have one of this name; AGENT_UNKNOWN
 */
export async function findSession(mount: string, session: string, agent: string | undefined): Promise<string> {
  const agents = agent === undefined ? await readdir(join(mount, 'agents')) : [agent];
  const owners: string[] = [];
  for (const name of agents) {
    if ((await sessionNames(mount, name)).includes(session)) owners.push(name);
  }
  const [owner, ...others] = owners;
  if (owner === undefined) throw new BridleError('SESSION_UNKNOWN', `there is no session ${session}`);
  if (others.length > 0) {
    throw new BridleError('SESSION_UNKNOWN', `session ${session} is in ${owners.join(', ')}: name one with --agent`);
  }
  return join(mount, 'agents', owner, 'sessions', session);
}

async function sessionNames(mount: string, agent: string): Promise<string[]> {
  try {
    const entries = await readdir(join(mount, 'agents', agent, 'sessions'), { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    throw missing ? new BridleError('AGENT_UNKNOWN', `there is no agent ${agent}`, { cause }) : cause;
  }
}

async function summarize(mount: string, agent: string, session: string): Promise<SessionSummary> {
  const directory = join(mount, 'agents', agent, 'sessions', session);
  const [state, runs, events] = await Promise.all([
    readFile(join(directory, 'state'), 'utf8'),
    readdir(join(directory, 'runs')),
    stat(join(directory, 'events.jsonl')),
  ]);
  return { agent, session, state: state.trim(), runs: runs.length, updatedAt: events.mtime.toISOString() };
}
