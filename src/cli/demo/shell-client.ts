import { text } from 'node:stream/consumers';
import { BridleError } from '../../contract/errors.js';
import { Lifecycle } from '../../lifecycle/lifecycle.js';
import { VolatileLeaseStore } from '../volatile-lease-store.js';

/**
 * Runs a shell script as a client of the mount: a process of its own, since the kernel would let no process wait for
 * itself, and contained like every process that bridle starts.
 * @throws BridleError INTERNAL with what the shell said, when it fails
 */
export async function runShellClient(
  script: string,
  options: { cwd: string; scratch: string; path: string },
): Promise<void> {
  await using lifecycle = new Lifecycle({ stateDir: options.scratch, store: new VolatileLeaseStore() });
  const lease = lifecycle.lease({ id: 'demo-client', kind: 'probe', harness: 'sh' });
  try {
    const env = { PATH: options.path };
    const child = await lease.launcher.launch({ argv: ['/bin/sh', '-euc', script], env, cwd: options.cwd });
    child.stdin.end();
    child.stdout.resume();
    const [complaint, { code }] = await Promise.all([text(child.stderr), child.exited]);
    if (code !== 0) throw new BridleError('INTERNAL', `the client failed: ${complaint.trim()}`);
  } finally {
    await lease.close();
  }
}
