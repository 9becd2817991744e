import { supervisorExecutable } from '../native/addon.js';
import { Lease, type LeaseContext, type LeaseStep } from './lease.js';
import { leaseRecordSchema, type Operation } from './lease-record.js';
import type { LeaseStore } from './lease-store.js';
import type { BoundaryStrength } from './platform.js';
import { choosePlatform } from './platforms.js';
import { type RecoveredLease, recoverRecord } from './recovery.js';

export type { Lease, LeaseStep } from './lease.js';
export type { BoundaryStrength, Cleanup } from './platform.js';
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
  /** Age at which a record is recovered although nobody can tell whether its owner lives, ms. Default 300 000. */
  readonly staleGraceMs?: number;
  /** false: contain by subreaper alone even where cgroups can be made. Default true. */
  readonly cgroup?: boolean;
  /** `starttime`: do as on a kernel without pidfs. Default: the strongest that the kernel has. */
  readonly birthToken?: 'pidfs' | 'starttime';
  /** Default: the machine's. */
  readonly platform?: NodeJS.Platform;
  /** Fault point of tests: called at each moment between which a lease can be interrupted. */
  readonly onStep?: (step: LeaseStep) => void;
}

/** Starts and ends the processes of a daemon. The only way to a child process. */
export class Lifecycle implements AsyncDisposable {
  readonly strength: BoundaryStrength;
  readonly #context: LeaseContext;
  readonly #active = new Map<string, Lease>();
  readonly #staleGraceMs: number;

  /** @throws BridleError PLATFORM_UNSUPPORTED where nothing can contain a process; no child exists then */
  constructor(options: LifecycleOptions) {
    const platform = choosePlatform(options.platform ?? process.platform, {
      stateDir: options.stateDir,
      supervisorExecutable: options.supervisorExecutable ?? supervisorExecutable,
      cleanupTimeoutMs: options.cleanupTimeoutMs ?? 10_000,
      graceMs: options.graceMs ?? 100,
      cgroup: options.cgroup ?? true,
      birthToken: options.birthToken,
    });
    this.strength = platform.strength;
    this.#staleGraceMs = options.staleGraceMs ?? 300_000;
    this.#context = {
      platform,
      store: options.store,
      startTimeoutMs: options.startTimeoutMs ?? 30_000,
      onStep: options.onStep ?? (() => undefined),
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
    const options = { staleGraceMs: this.#staleGraceMs, active: new Set(this.#active.keys()) };
    const stored = await this.#context.store.list();
    const results = await Promise.all(stored.map((record) => recoverRecord(record, this.#context, options)));
    const known = new Set(this.#active.keys());
    for (const record of stored) {
      const parsed = leaseRecordSchema.safeParse(record);
      if (parsed.success) known.add(parsed.data.id);
    }
    await this.#context.platform.removeLeftovers(known);
    return results;
  }

  /** Closes every open lease. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#active.values()].map((lease) => lease.close()));
  }
}
