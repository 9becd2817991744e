// Starts and ends processes in every way at once, in the main thread and in two workers, while fork servers are killed;
// then ends with starts under way. Meant to run under ThreadSanitizer. usage: node process-stress.mjs DIRECTORY ROUNDS
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

const load = (path) => import(new URL(`../../../dist/${path}`, import.meta.url).href);
const { Journal } = await load('durable/journal.js');
const { JournalLeaseStore } = await load('lifecycle/journal-lease-store.js');
const { Lifecycle } = await load('lifecycle/lifecycle.js');

const AT_ONCE = 4;
const counts = { started: 0, failed: 0, killed: 0 };
const env = { PATH: '/usr/bin:/bin' };
const sh = (script) => ({ argv: ['/bin/sh', '-c', script], env, cwd: '/' });

/** What a round does with its lease; a failed start is as good an end as any other. */
const WAYS = [
  async (lease) => await (await launch(lease, sh('echo out; echo err >&2'))).exited,
  async (lease) => await (await launch(lease, { ...sh('echo out'), terminal: { rows: 24, columns: 80 } })).exited,
  async (lease) => await launch(lease, sh('sleep 60 & exec sleep 60')),
  async (lease) => await launch(lease, { argv: ['/nonexistent/program'], env, cwd: '/' }),
  async (lease) => await launch(lease, { ...sh('true'), cwd: '/nonexistent' }),
  async (lease) => {
    const starting = launch(lease, sh('sleep 60'));
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([lease.close(), starting]);
  },
];

async function launch(lease, spec) {
  const child = await lease.launcher.launch(spec);
  child.stdout.resume();
  child.stderr.resume();
  counts.started += 1;
  return child;
}

async function stress(directory, rounds, kills) {
  const stateDir = mkdtempSync(join(directory, 'state-'));
  const journal = await Journal.open(stateDir);
  const lifecycle = new Lifecycle({ stateDir, store: new JournalLeaseStore(journal) });
  let left = rounds;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      if (kills && left % 25 === 24) killForkServers();
      const lease = lifecycle.lease({ id: `run-${left}`, kind: 'run', harness: 'test' });
      try {
        await WAYS[left % WAYS.length](lease);
      } catch (error) {
        if (error.code !== 'SPAWN_FAILED') throw error;
        counts.failed += 1;
      }
      const cleanup = await lease.close();
      if (!cleanup.empty) throw new Error(JSON.stringify(cleanup));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const begun = Array.from({ length: AT_ONCE }, (_, number) => {
    const lease = lifecycle.lease({ id: `last-${number}`, kind: 'run', harness: 'test' });
    return launch(lease, sh('sleep 60')).catch((error) => error.code);
  });
  await lifecycle[Symbol.asyncDispose]();
  await Promise.all(begun);
  await journal.close();
  const records = readdirSync(join(stateDir, 'leases')).length;
  rmSync(stateDir, { recursive: true });
  return records;
}

/** Children of this process without a lease. */
function killForkServers() {
  for (const task of readdirSync('/proc/self/task')) {
    for (const pid of readFileSync(`/proc/self/task/${task}/children`, 'utf8').trim().split(' ')) {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, 'utf8').startsWith(`BRIDLE_LEASE=${'0'.repeat(32)}`)) continue;
        process.kill(Number(pid), 'SIGKILL');
        counts.killed += 1;
      } catch (error) {
        // It has ended meanwhile, or there was none.
        if (!['ENOENT', 'ESRCH'].includes(error.code)) throw error;
      }
    }
  }
}

if (isMainThread) {
  const [directory, rounds] = process.argv.slice(2);
  const workers = [1, 2].map(() => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { directory, rounds } });
    return new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve));
  });
  const records = await stress(directory, Number(rounds), true);
  const codes = await Promise.all(workers);
  process.stdout.write(JSON.stringify({ ...counts, records, codes }));
} else {
  await stress(workerData.directory, Number(workerData.rounds), false);
}
