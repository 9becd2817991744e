import { text } from 'node:stream/consumers';
import { BridleError } from '../../contract/errors.js';
import type { LeaseStore } from '../../lifecycle/lease-store.js';
import { Lifecycle } from '../../lifecycle/lifecycle.js';

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

/** Records of processes that must not outlive this one: nobody recovers them. */
class VolatileLeaseStore implements LeaseStore {
  readonly #records = new Map<string, unknown>();

  put(record: Parameters<LeaseStore['put']>[0]): Promise<void> {
    this.#records.set(record.id, record);
    return Promise.resolve();
  }

  remove(id: string): Promise<void> {
    this.#records.delete(id);
    return Promise.resolve();
  }

  list(): Promise<unknown[]> {
    return Promise.resolve([...this.#records.values()]);
  }
}
