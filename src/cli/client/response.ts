import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Response } from '../../contract/terminal.js';
import { pause } from './pause.js';

const POLL_MS = 10;

/**
 * The response to a request, when its file has appeared; it comes after the last event row.
 * @returns undefined when the signal is aborted first
 */
export async function awaitResponse(
  mount: string,
  agent: string,
  id: string,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const path = join(mount, 'agents', agent, 'outbox', `${id}.resp.json`);
  while (!signal.aborted) {
    const text = await readIfThere(path);
    if (text !== undefined) return JSON.parse(text) as Response;
    await pause(POLL_MS, signal);
  }
  return undefined;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Not written yet, or the daemon is being restarted: the file is durable and comes back with it.
    if (code === 'ENOENT' || code === 'ENOTCONN' || code === 'ECONNABORTED') return undefined;
    throw error;
  }
}
