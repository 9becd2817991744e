import { readdir } from 'node:fs/promises';
import { BridleError } from '../contract/errors.js';
import type { Journal } from '../durable/journal.js';
import { readRows, toRow } from '../durable/rows.js';
import { type QueueRow, queueRowSchema } from './queue-rows.js';
import { type QueueEntry, QueueState } from './queue-state.js';

const FILE_NAME = /^log\.([0-9]{1,9})\.jsonl$/;
const CHUNK_BYTES = 1024 * 1024;

export interface OpenedLog {
  readonly target: string;
  readonly state: QueueState;
}

/**
 * Reads the queue log and compacts it when it is larger than `limit` bytes. The log is `queue/log.<n>.jsonl`;
 * compaction writes log n+1, which counts only when it has its last row, and then removes log n: a crash in between
 * loses nothing and the next start tidies up.
 */
export async function openQueueLog(journal: Journal, limit: number): Promise<OpenedLog> {
  const generations = await listGenerations(journal.path('queue'));
  let opened: { generation: number; state: QueueState } | undefined;
  for (const generation of generations) {
    const { state, complete } = await readLog(journal.path(targetOf(generation)));
    if (opened === undefined && (complete || generation === 0)) opened = { generation, state };
    else journal.remove(targetOf(generation));
  }
  if (opened === undefined) {
    if (generations.length > 0) throw new BridleError('STATE_CORRUPT', 'queue: no log is complete');
    opened = { generation: 0, state: new QueueState() };
  }
  const target = targetOf(opened.generation);
  if (journal.size(target) <= limit) return { target, state: opened.state };
  const next = targetOf(opened.generation + 1);
  await compact(journal, next, opened.state);
  journal.remove(target);
  return { target: next, state: opened.state };
}

async function compact(journal: Journal, target: string, state: QueueState): Promise<void> {
  let chunk = '';
  const flush = async () => {
    journal.append(target, chunk);
    chunk = '';
    await journal.durable();
  };
  // Open requests last and in order of acceptance, as the log had them.
  const finished = [...state.all()].filter((entry) => entry.state === 'finished');
  for (const entry of [...finished, ...state.unfinished()]) {
    chunk += rowsOf(entry).map(toRow).join('');
    if (chunk.length >= CHUNK_BYTES) await flush();
  }
  chunk += toRow({ type: 'compacted' } satisfies QueueRow);
  await flush();
}

function rowsOf(entry: QueueEntry): QueueRow[] {
  const { agent, id, serial, digest } = entry;
  if (entry.state === 'finished') {
    return [{ type: 'receipt', agent, id, serial, digest, ...entry.place, result: entry.result }];
  }
  const accepted: QueueRow = { type: 'accepted', ...entry.accepted };
  return entry.state === 'waiting' ? [accepted] : [accepted, { type: 'started', agent, id, ...entry.place }];
}

async function readLog(path: string): Promise<{ state: QueueState; complete: boolean }> {
  const state = new QueueState();
  let complete = false;
  for await (const row of readRows(path)) {
    const parsed = queueRowSchema.safeParse(row);
    if (!parsed.success) throw new BridleError('STATE_CORRUPT', `${path}: ${parsed.error.issues[0]?.message ?? ''}`);
    if (parsed.data.type === 'compacted') complete = true;
    state.fold(parsed.data);
  }
  return { state, complete };
}

/** Numbers of the logs that are there, newest first. */
async function listGenerations(directory: string): Promise<number[]> {
  try {
    const numbers = (await readdir(directory)).map((name) => FILE_NAME.exec(name)?.[1]);
    return numbers.flatMap((number) => (number === undefined ? [] : [Number(number)])).sort((a, b) => b - a);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function targetOf(generation: number): string {
  return `queue/log.${generation}.jsonl`;
}
