// The commands that a server in JavaScript takes on standard input, a line each.
import { createInterface } from 'node:readline';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

const BLOCKED_MS = 250;
const MS_PER_US = 1e-3;

/**
 * Until standard input ends. `changes COUNT MICROSECONDS` replaces `latest` so often and prints when;
 * `stall MILLISECONDS` keeps this thread busy for so long, but for a turn of the event loop every 250 ms, and prints
 * `stalled`.
 * @param {(version: number) => void} change
 */
export async function obey(change) {
  console.log('ready');
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, first, second] = line.split(' ');
    if (command === 'changes') console.log(JSON.stringify(await changes(change, Number(first), Number(second))));
    if (command === 'stall') console.log(await stall(Number(first)));
  }
}

async function changes(change, count, pauseUs) {
  const times = [];
  for (let version = 1; version <= count; version += 1) {
    await sleep(pauseUs * MS_PER_US);
    times.push(Number(process.hrtime.bigint()));
    change(version);
  }
  return times;
}

async function stall(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const until = performance.now() + BLOCKED_MS;
    while (performance.now() < until);
    await turn();
  }
  return 'stalled';
}
