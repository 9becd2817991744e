// Processes: how long a start takes with a small and with a large daemon, how soon an end is reported, how fast a
// boundary is empty, how many threads many children need. The peers of the same run are a bare posix_spawn() with its
// waitpid(), and Node's own spawn, which has rows of its own.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { benchDirectory } from './lib/directory.mjs';
import { compile } from './lib/native.mjs';
import { percentile } from './lib/statistics.mjs';
import { runInWorker } from './lifecycle/run-in-worker.mjs';

const HEAPS = [
  { name: '50mib', mib: 50 },
  { name: '1gib', mib: 1024 },
];
const EMPTY = [
  { processes: 7, rounds: 20 },
  { processes: 500, rounds: 10 },
];
const CHILDREN = 200;
const ROUNDS = 200;

/** @param {(message: string) => void} say */
export async function lifecycle(say) {
  const directory = await benchDirectory();
  try {
    return await measure(directory, say);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function measure(directory, say) {
  const [posixSpawn, lastWords, processTree] = await Promise.all(
    ['posix-spawn', 'last-words', 'process-tree'].map((name) => compile(name, directory)),
  );
  const rows = [];
  const run = (task, heapMib, options) =>
    runInWorker({ task, heapMib, stateDir: join(directory, `state-${rows.length}`), ...options });

  for (const { name, mib } of HEAPS) {
    say(`${ROUNDS} starts with ${mib} MiB`);
    const samples = await run('start', mib, { rounds: ROUNDS, program: '/bin/true', posixSpawn });
    rows.push(...compared(`lifecycle.start.${name}`, samples, 'posix_spawn'));
  }
  say(`${ROUNDS} exits`);
  const exits = await run('exit', HEAPS[0].mib, { rounds: ROUNDS, program: lastWords, posixSpawn });
  rows.push(...compared('lifecycle.exit', exits, 'waitpid'));
  for (const { processes, rounds } of EMPTY) {
    say(`${rounds} boundaries of ${processes} processes`);
    const { ours } = await run('empty', HEAPS[0].mib, { rounds, program: processTree, processes });
    rows.push(timed(`lifecycle.empty.${processes}`, ours));
  }
  say(`${CHILDREN} children at a time`);
  const { threads } = await run('threads', 0, { children: CHILDREN });
  rows.push({ id: `lifecycle.threads.${CHILDREN}`, value: threads, unit: 'threads' });
  return rows;
}

function compared(id, { ours, node, bare }, peer) {
  const peerValue = percentile(bare, 50);
  return [timed(id, ours), timed(`${id}.node`, node)].map((row) => ({
    ...row,
    peer,
    peerValue,
    ratio: row.value / peerValue,
  }));
}

function timed(id, samples) {
  const p50 = percentile(samples, 50);
  return { id, value: p50, unit: 'ms', p50, p99: percentile(samples, 99) };
}
