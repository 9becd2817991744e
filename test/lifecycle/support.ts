import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BridleError } from '../../src/contract/errors.js';
import type { LaunchSpec } from '../../src/contract/harness.js';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import type { LeaseRecord } from '../../src/lifecycle/lease-record.js';
import type { LeaseStore, StoredLease } from '../../src/lifecycle/lease-store.js';
import { Lifecycle, type LifecycleOptions } from '../../src/lifecycle/lifecycle.js';
import { findCgroupPlaces } from '../../src/lifecycle/linux/cgroup-mounts.js';
import { identify } from '../../src/native/identity.js';
import { signalProcess } from '../../src/native/process.js';
import { until } from '../support/until.js';

export const SIGKILL = 9;
export const OPERATION = { id: 'run-1', kind: 'run', harness: 'test' } as const;

/** Records in memory: what a test looks at. */
export class MemoryStore implements LeaseStore {
  readonly records = new Map<string, unknown>();
  readonly states: string[] = [];

  put(record: LeaseRecord): Promise<boolean> {
    const stored = this.records.get(record.id) as LeaseRecord | undefined;
    if (record.revision !== (stored?.revision ?? 0) + 1) return Promise.resolve(false);
    this.records.set(record.id, structuredClone(record));
    this.states.push(record.state);
    return Promise.resolve(true);
  }

  remove({ id, revision }: LeaseRecord): Promise<void> {
    const stored = this.records.get(id) as LeaseRecord | undefined;
    if (stored === undefined || stored.revision > revision) return Promise.resolve();
    this.records.delete(id);
    this.states.push('removed');
    return Promise.resolve();
  }

  list(): Promise<StoredLease[]> {
    return Promise.resolve([...this.records].map(([id, content]) => ({ id, content })));
  }

  only(): LeaseRecord {
    const [record] = this.records.values();
    if (!record || this.records.size !== 1) throw new Error(`expected one record, there are ${this.records.size}`);
    return record as LeaseRecord;
  }
}

/** A directory, a store and a lifecycle on them; disposing ends every lease and removes the directory. */
export class World implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'lifecycle-'));
  readonly store: MemoryStore;
  readonly lifecycle: Lifecycle;

  constructor(options: Partial<LifecycleOptions> = {}, store = new MemoryStore()) {
    this.store = store;
    this.lifecycle = new Lifecycle({ stateDir: this.directory, store, ...options });
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** A shell script; `$1` is the test's directory. */
  script(text: string): LaunchSpec {
    return { argv: ['/bin/sh', '-c', text, 'sh', this.directory], env: { PATH: '/usr/bin:/bin' }, cwd: '/' };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lifecycle[Symbol.asyncDispose]();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/**
 * A child that ignores TERM and starts a descendant that escapes as well as a shell can: double fork, a session of its
 * own, no TERM. Both write their process ids.
 */
export const STUBBORN = `trap '' TERM HUP INT
(setsid sh -c 'trap "" TERM HUP INT; echo $$ > "$1/grandchild.tmp"; mv "$1/grandchild.tmp" "$1/grandchild"
  while :; do sleep 0.2; done' sh "$1" </dev/null >/dev/null 2>&1 &)
echo $$ > "$1/child.tmp"; mv "$1/child.tmp" "$1/child"
while :; do sleep 0.2; done`;

/** Identity of the process that wrote its number into a file of the directory. */
export async function writtenIdentity(directory: string, name: string): Promise<ProcessIdentity> {
  const pid = (): number => {
    try {
      return Number(readFileSync(join(directory, name), 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
      throw error;
    }
  };
  await until(() => pid() > 0, `${name} wrote its process id`);
  const identity = identify(pid());
  if (!identity) throw new Error(`${name} is gone already`);
  return identity;
}

/** Ends a process that the test itself made. */
export function kill(identity: ProcessIdentity | null): void {
  if (identity) signalProcess(identity, SIGKILL);
}

export function isAlive(identity: ProcessIdentity): boolean {
  return signalProcess(identity, 0) === 'sent';
}

export async function untilGone(identity: ProcessIdentity): Promise<void> {
  await until(() => !isAlive(identity), `process ${identity.pid} is gone`);
}

/** The error of a promise that must fail. */
export async function failureOf(promise: Promise<unknown>): Promise<BridleError> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof BridleError) return outcome;
  throw new Error(`expected a BridleError, got ${String(outcome)}`);
}

/** Living and dead children of a process, as the kernel lists them at one moment. */
export function childrenOf(pid: number): number[] {
  const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return list.split(' ').filter(Boolean).map(Number);
}

/** The cgroup of a record's boundary, or undefined. */
export function cgroupOf({ boundary }: LeaseRecord): { readonly path: string; readonly inode: string } | undefined {
  return boundary.kind === 'cgroup+subreaper' ? boundary.cgroup : undefined;
}

/** Cgroups of leases that exist now below ours. */
export function leaseCgroups(): string[] {
  return CGROUP_ROOT === null ? [] : readdirSync(CGROUP_ROOT).filter((name) => /^bridle-[0-9a-f]{8}-/.test(name));
}

/** Where boundaries get their cgroups; null on a machine (or for a user) that has none. Tests then show what is left. */
export const CGROUP_ROOT = findCgroupPlaces().root;

/** The boundary kinds that this machine can make. */
export const BOUNDARIES: readonly { readonly name: string; readonly cgroup: boolean }[] = [
  ...(CGROUP_ROOT === null ? [] : [{ name: 'with a cgroup', cgroup: true }]),
  { name: 'without a cgroup', cgroup: false },
];
