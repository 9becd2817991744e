import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BridleError } from '../contract/errors.js';
import type { ProcessIdentity } from '../contract/identity.js';
import { supervisorExecutable } from '../native/addon.js';
import { identify } from '../native/identity.js';
import { probeContainment } from '../native/process.js';
import { removeCgroup } from './boundary.js';
import { Lease, type LeaseContext } from './lease.js';
import { leaseRecordSchema, type Operation } from './lease-record.js';
import type { LeaseStore } from './lease-store.js';
import { type RecoveredLease, recoverRecord } from './recovery.js';

export type { Cleanup } from './boundary.js';
export type { Lease } from './lease.js';
export type { RecoveredLease } from './recovery.js';

export interface LifecycleOptions {
  /** State directory of the daemon, locked by it. Supervisors leave their outcome in `witness/` below it. */
  readonly stateDir: string;
  readonly store: LeaseStore;
  /** Default: the one that was built with the addon. */
  readonly supervisorExecutable?: string;
  /** Time in which a boundary must be observed empty, milliseconds. Nothing shortens it. Default 10 000. */
  readonly cleanupTimeoutMs?: number;
  /** Time between TERM and KILL, milliseconds. Default 100. */
  readonly graceMs?: number;
  /** Time for each step of a start, milliseconds. Default 30 000. */
  readonly startTimeoutMs?: number;
  /** false: contain by subreaper alone even where cgroups can be made. Default true. */
  readonly cgroup?: boolean;
  /** Default: the machine's. */
  readonly platform?: NodeJS.Platform;
}

/** How strong the boundaries of this daemon are; shown in status.json. */
export interface BoundaryStrength {
  readonly kind: 'cgroup+subreaper' | 'subreaper';
  /** Why it is not the strongest, as one sentence; null when it is. */
  readonly weakness: string | null;
  readonly birthToken: ProcessIdentity['scheme'];
}

function unsupported(reason: string): BridleError {
  return new BridleError('PLATFORM_UNSUPPORTED', reason);
}

function ownIdentity(): ProcessIdentity {
  const identity = identify(process.pid);
  if (!identity) throw new BridleError('INTERNAL', 'this process has no identity');
  return identity;
}

/** Starts and ends the processes of a daemon. The only way to a child process. */
export class Lifecycle implements AsyncDisposable {
  readonly strength: BoundaryStrength;
  readonly #context: LeaseContext;
  readonly #active = new Map<string, Lease>();
  readonly #cgroupRoot: string | null;
  readonly #cgroupPrefix: string;

  /** @throws BridleError PLATFORM_UNSUPPORTED where nothing can contain a process; no child exists then */
  constructor(options: LifecycleOptions) {
    const platform = options.platform ?? process.platform;
    if (platform !== 'linux') throw unsupported(`${platform} has no containment`);
    const support = probeContainment();
    if (!support.pidfd || !support.subreaper) throw unsupported('this kernel has no pidfd (Linux 5.4 or newer has)');
    const owner = ownIdentity();
    const witnesses = join(options.stateDir, 'witness');
    mkdirSync(witnesses, { recursive: true, mode: 0o700 });
    // Several daemons may share a cgroup: each knows its own directories by the state directory.
    const state = createHash('sha256').update(realpathSync(options.stateDir)).digest('hex').slice(0, 8);
    this.#cgroupPrefix = `bridle-${state}-`;
    this.#cgroupRoot = options.cgroup === false ? null : support.cgroupRoot;
    const root = this.#cgroupRoot;
    this.strength = {
      kind: root === null ? 'subreaper' : 'cgroup+subreaper',
      weakness:
        root === null ? 'No cgroup can be made: processes may be left when daemon and supervisor are killed.' : null,
      birthToken: owner.scheme,
    };
    this.#context = {
      store: options.store,
      supervisorExecutable: options.supervisorExecutable ?? supervisorExecutable,
      owner,
      cgroupOf: (id) => (root === null ? '' : join(root, this.#cgroupPrefix + id)),
      witnessOf: (id) => join(witnesses, id),
      graceMs: options.graceMs ?? 100,
      cleanupTimeoutMs: options.cleanupTimeoutMs ?? 10_000,
      startTimeoutMs: options.startTimeoutMs ?? 30_000,
      onClosed: (lease) => this.#active.delete(lease.id),
    };
  }

  /** A lease for one run or probe. Close it, whatever happened. */
  lease(operation: Operation): Lease {
    const lease = new Lease(this.#context, operation);
    this.#active.set(lease.id, lease);
    return lease;
  }

  /** Number of leases that are not closed yet. */
  get active(): number {
    return this.#active.size;
  }

  /**
   * Settles every record that an earlier daemon left: waits for supervisors that still clean up, kills what is provably
   * ours, never signals a process whose birth token differs from the record. Call it with the state directory locked.
   */
  async recover(): Promise<RecoveredLease[]> {
    const active = new Set(this.#active.keys());
    const stored = await this.#context.store.list();
    const results = await Promise.all(stored.map((record) => recoverRecord(record, this.#context, active)));
    await this.#removeLeftCgroups(stored);
    return results;
  }

  /** Closes every open lease. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#active.values()].map((lease) => lease.close()));
  }

  /**
   * A daemon that dies between the making of a cgroup and the record leaves the directory, empty: its child never got
   * through the gate.
   */
  async #removeLeftCgroups(stored: readonly unknown[]): Promise<void> {
    if (this.#cgroupRoot === null) return;
    const known = new Set(this.#active.keys());
    for (const record of stored) {
      const parsed = leaseRecordSchema.safeParse(record);
      if (parsed.success) known.add(parsed.data.id);
    }
    for (const name of await readdir(this.#cgroupRoot)) {
      const id = name.startsWith(this.#cgroupPrefix) ? name.slice(this.#cgroupPrefix.length) : undefined;
      if (id !== undefined && !known.has(id)) await removeCgroup(join(this.#cgroupRoot, name));
    }
  }
}
