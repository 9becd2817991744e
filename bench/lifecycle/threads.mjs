// Threads of the daemon while many children run.
import { readFile } from 'node:fs/promises';

const SPEC = { argv: ['/bin/sleep', '600'], env: {}, cwd: '/' };

export async function threads(daemon, { children }) {
  const leases = Array.from({ length: children }, () => daemon.lease());
  await Promise.all(leases.map((lease) => lease.launcher.launch(SPEC)));
  const status = await readFile('/proc/self/status', 'utf8');
  await Promise.all(leases.map((lease) => lease.close()));
  return { threads: Number(/^Threads:\s*(\d+)/m.exec(status)?.[1]) };
}
