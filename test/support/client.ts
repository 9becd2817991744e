import { randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventRow } from '../../src/contract/events.js';
import type { Response } from '../../src/contract/terminal.js';
import { until } from './until.js';

/** Writes a temporary file in the inbox, as clients do. @returns its path */
export async function writeTemporary(agent: string, content: string | Uint8Array): Promise<string> {
  const path = join(agent, 'inbox', `.${randomBytes(6).toString('hex')}.tmp`);
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return path;
}

/** Hands a request in. @returns undefined, or the errno name of the refusal */
export async function handIn(agent: string, id: string, content: unknown): Promise<string | undefined> {
  const raw = typeof content === 'string' || content instanceof Uint8Array ? content : JSON.stringify(content);
  const temporary = await writeTemporary(agent, raw);
  return errnoOf(rename(temporary, join(agent, 'inbox', `${id}.req.json`)));
}

/** The errno name a file operation failed with, or undefined. */
export async function errnoOf(operation: Promise<unknown>): Promise<string | undefined> {
  try {
    await operation;
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/** Waits for the response to a request. */
export async function response(agent: string, id: string, deadlineMs?: number): Promise<Response> {
  const path = join(agent, 'outbox', `${id}.resp.json`);
  let text = '';
  await until(
    async () => {
      text = await textOf(path);
      return text !== '';
    },
    `${path} appears`,
    deadlineMs,
  );
  return JSON.parse(text) as Response;
}

/** Rows of a JSON lines file. */
export async function rows<T = EventRow>(path: string): Promise<T[]> {
  const text = await readFile(path, 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

/** Content of a file, or the empty string when there is none. */
export async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
