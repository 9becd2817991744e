import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runClients } from '../lib/clients.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { sizeOf } from '../lib/process-size.mjs';

/** How large the whole daemon is after so many requests, each of which made a session. @param {number} sessions */
export async function sizeWithSessions(sessions) {
  const daemon = await startDaemon();
  try {
    const agent = join(daemon.mount, 'agents/default');
    await runClients({ mode: 'mount', directory: agent, clients: 1, requests: sessions });
    const { length } = await readdir(join(agent, 'sessions'));
    if (length !== sessions) throw new Error(`${length} sessions instead of ${sessions}`);
    return await sizeOf(daemon.pid);
  } finally {
    await daemon.stop();
  }
}
