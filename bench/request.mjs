// Requests through the mount with `echo`: how many a second, how long one takes, what the daemon needs for it. The peer
// is the durable hand-off that any file queue needs, on the same file system in the same run: write, fsync, rename,
// fsync of the directory.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runClients } from './lib/clients.mjs';
import { startDaemon } from './lib/daemon.mjs';
import { sizeOf } from './lib/process-size.mjs';
import { percentile } from './lib/statistics.mjs';

const CLIENTS = [
  { clients: 1, requests: 300 },
  { clients: 16, requests: 1600 },
];
const WARM_UP = 100;
const PEER = 'ext4 hand-off';

/** @param {(message: string) => void} say */
export async function request(say) {
  const daemon = await startDaemon();
  try {
    return await measure(daemon, say);
  } finally {
    await daemon.stop();
  }
}

async function measure(daemon, say) {
  const bare = join(daemon.directory, 'bare');
  await mkdir(bare);
  const agent = join(daemon.mount, 'agents', 'default');
  await runClients({ mode: 'mount', directory: agent, clients: 1, requests: WARM_UP });

  const rows = [];
  for (const { clients, requests } of CLIENTS) {
    say(`${requests} requests from ${clients} client process${clients === 1 ? '' : 'es'}`);
    const ours = await runClients({ mode: 'mount', directory: agent, clients, requests });
    const peer = await runClients({ mode: 'bare', directory: bare, clients, requests });
    rows.push(compared(`request.rate.${clients}`, '1/s', ours.rate, peer.rate));
    const [p50, p99] = [percentile(ours.latencies, 50), percentile(ours.latencies, 99)];
    const latency = compared(`request.latency.${clients}`, 'ms', p50, percentile(peer.latencies, 50));
    rows.push({ ...latency, p50, p99 });
  }
  const { rss, threads } = await sizeOf(daemon.pid);
  rows.push({ id: 'request.rss', value: rss, unit: 'MiB' });
  rows.push({ id: 'request.threads', value: threads, unit: 'threads' });
  return rows;
}

function compared(id, unit, value, peerValue) {
  return { id, value, unit, peer: PEER, peerValue, ratio: value / peerValue };
}
