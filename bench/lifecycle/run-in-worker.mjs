// Runs one task in a Node process of its own, whose size and threads are then what the task makes them.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

/** @param {{ task: string, heapMib: number, stateDir: string, [option: string]: unknown }} order */
export async function runInWorker(order) {
  const { stdout } = await promisify(execFile)(process.execPath, [WORKER, JSON.stringify(order)]);
  return JSON.parse(stdout);
}
