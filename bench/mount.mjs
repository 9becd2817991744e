// The mount: what a request costs from one client and from four, with everything on one processor (where figures
// repeat) and wherever the scheduler likes. The peers serve the same tree in the same run: the plainest server in C, and
// fuse-native. Unless an id says `cached`, the kernel may keep no name and no attribute, so that every call is asked.
import { rm } from 'node:fs/promises';
import { benchDirectory } from './lib/directory.mjs';
import { sizeOf } from './lib/process-size.mjs';
import { Competitors } from './mount/competitors.mjs';
import { sizeWithSessions } from './mount/daemon-size.mjs';
import { staleness } from './mount/freshness.mjs';
import { compared, rateRow, slowestRow } from './mount/rows.mjs';
import { makeBacking, toMegabytes } from './mount/tree.mjs';

const ROUNDS = 5;
const SECONDS = 0.3;
const CLIENTS = [
  { clients: 1, suffix: '' },
  { clients: 4, suffix: '.4' },
];
const ASKED = [
  { id: 'enoent', operation: 'enoent' },
  { id: 'stat', operation: 'stat' },
  { id: 'read4k', operation: 'read4k' },
  { id: 'list1000', operation: 'list1000' },
  { id: 'handoff.volatile', operation: 'handoff' },
];
const CACHED = [
  { id: 'stat.cached', operation: 'stat' },
  { id: 'list1000.cached', operation: 'list1000' },
];
const DURABLE = { operation: 'durable', clients: 16, seconds: 2 };
const LOOK_SECONDS = 4;
const BUSY_MS = 4500;
const SESSIONS = 100;
const US_PER_MS = 1e3;

/** @param {(message: string) => void} say */
export async function mount(say) {
  const directory = await benchDirectory();
  try {
    await makeBacking(directory);
    const competitors = await Competitors.prepare(directory, say);
    return await measure({ competitors, directory, say });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function measure(bench) {
  const { competitors, say } = bench;
  const rows = [];
  say('everything on one processor');
  await competitors.serve({ pinned: true }, async () => {
    rows.push(...(await rates(bench, ASKED, { pinned: true, place: '' })));
    rows.push(await sequential(bench, 'mount.seqread', { pinned: true }));
  });
  say('everything on one processor, from the cache');
  await competitors.serve({ pinned: true, cached: true }, async () => {
    rows.push(...(await rates(bench, CACHED, { pinned: true, place: '' })));
  });
  say('floating');
  const sizes = await competitors.serve({}, async () => {
    rows.push(...(await rates(bench, ASKED, { pinned: false, place: '.floating' })));
    rows.push(await sequential(bench, 'mount.seqread.floating', { pinned: false }));
    return await competitors.inTurns(1, ({ pid }) => sizeOf(pid));
  });
  say(`hand-off with fsync of file and directory, ${DURABLE.clients} clients`);
  await competitors.serve({ journal: true }, async () => {
    const durable = await competitors.inTurns(1, ({ mountpoint }) =>
      competitors.client({ ...DURABLE, directory: mountpoint }),
    );
    rows.push(rateRow(`mount.handoff.durable${DURABLE.clients}`, '1/s', durable));
  });
  say('changes of a file that is read all the time');
  await competitors.serve({ cached: true }, async () => {
    const stale = await competitors.inTurns(1, (server) => staleness(competitors, server));
    rows.push(slowestRow('mount.stale.p99', stale));
  });
  say('stat, ls and cat while JavaScript is busy');
  await competitors.serve({}, async () => {
    rows.push(await whileBusy(competitors));
  });
  say(`a daemon with ${SESSIONS} sessions`);
  const daemon = { ours: [await sizeWithSessions(SESSIONS)], peers: sizes.peers };
  rows.push(compared('mount.rss', 'MiB', daemon, ([{ rss }]) => rss));
  rows.push(compared('mount.threads', 'threads', daemon, ([{ threads }]) => threads));
  return rows;
}

async function rates({ competitors }, operations, { pinned, place }) {
  const rows = [];
  for (const { id, operation } of operations) {
    for (const { clients, suffix } of CLIENTS) {
      const load = { operation, seconds: SECONDS, clients, pinned };
      const measured = await competitors.inTurns(ROUNDS, ({ mountpoint }) =>
        competitors.client({ ...load, directory: mountpoint }),
      );
      rows.push(rateRow(`mount.${id}${place}${suffix}`, '1/s', measured));
    }
  }
  return rows;
}

/** 64 MiB of a `file` node, with the file system below as one more peer. */
async function sequential({ competitors, directory }, id, { pinned }) {
  const read = async (from) => {
    const result = await competitors.client({ operation: 'seqread', directory: from, seconds: SECONDS, pinned });
    return { ...result, rate: toMegabytes(result.rate) };
  };
  const { ours, peers } = await competitors.inTurns(ROUNDS, ({ mountpoint }) => read(mountpoint));
  const samples = [];
  for (let round = 0; round < ROUNDS; round += 1) samples.push(await read(directory));
  return rateRow(id, 'MB/s', { ours, peers: [...peers, { name: 'file system below', samples }] });
}

async function whileBusy(competitors) {
  const load = { operation: 'look', seconds: LOOK_SECONDS };
  const measured = await competitors.inTurns(1, async (server) => {
    const busy = server.command(`stall ${BUSY_MS}`);
    const [{ p50, p99 }] = await Promise.all([competitors.client({ ...load, directory: server.mountpoint }), busy]);
    return { p50: p50 / US_PER_MS, p99: p99 / US_PER_MS };
  });
  const [{ p50, p99 }] = measured.ours;
  return { ...compared('mount.stall.p99', 'ms', measured, ([sample]) => sample.p99), p50, p99 };
}
