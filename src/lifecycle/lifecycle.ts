import { supervisorExecutable } from '../native/addon.js';
import { Lease, type LeaseContext, type LeaseStep } from './lease.js';
import type { Operation } from './lease-record.js';
import type { LeaseStore, StoredLease } from './lease-store.js';
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

/** The id under which something is stored, and the one that it names itself. */
function idsOf({ id, content }: StoredLease): string[] {
  const named = typeof content === 'object' && content !== null && 'id' in content ? content.id : undefined;
  return typeof named === 'string' ? [id, named] : [id];
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
    const { store, platform } = this.#context;
    // Asked for each record when it is judged: leases may start and end meanwhile.
    const options = { staleGraceMs: this.#staleGraceMs, isActive: (id: string) => this.#active.has(id) };
    const stored = await store.list();
    const results = await Promise.all(stored.map(({ content }) => recoverRecord(content, this.#context, options)));
    await platform.removeLeftovers(() => this.#known());
    return results;
  }

  /** Ids of all leases that are held or stored, what cannot be read included. */
  async #known(): Promise<Set<string>> {
    // Held first: a lease that ends in between is not held any more, but its record is stored if one is left.
    const held = [...this.#active.keys()];
    const stored = await this.#context.store.list();
    return new Set([...held, ...stored.flatMap(idsOf)]);
  }

  /** Closes every open lease. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#active.values()].map((lease) => lease.close()));
  }
}
