import type { Readable, Writable } from 'node:stream';
import type { LaunchSpec, NotEnforced, ProcessExit, Terminal } from '../contract/harness.js';
import type { ProcessIdentity } from '../contract/identity.js';
import type { Boundary, Evidence, LeaseRecord } from './lease-record.js';

/** What one operating system does for leases. */
export interface Platform {
  /** This process. */
  readonly owner: ProcessIdentity;
  readonly strength: BoundaryStrength;
  /**
   * Makes the boundary of a lease with a child in it that waits before its first instruction.
   * @throws BridleError SPAWN_FAILED; nothing is left then
   */
  hold(order: HoldOrder): HeldChild;
  /** Ends and observes the boundary of a record whose owner is gone. Signals only what it proved. */
  settle(record: LeaseRecord): Promise<Cleanup>;
  /** Whether the process of a record can be told to live. `unknown`: it is out of our sight. */
  look(identity: ProcessIdentity): 'alive' | 'gone' | 'unknown';
  /** Removes what supervision without a cgroup left of a lease, once its processes are gone. */
  forget(leaseId: string): Promise<void>;
  /**
   * Removes what daemons left that died before they could record it.
   * @param known ids of the leases that are held or recorded; asked after everything was looked for and before anything
   *   is removed, so that a lease which begins meanwhile keeps what is its own
   */
  removeLeftovers(known: () => Promise<ReadonlySet<string>>): Promise<void>;
}

/** How strong the boundaries of this daemon are; shown in status.json. */
export interface BoundaryStrength {
  readonly kind: Boundary['kind'];
  /** Why it is not the strongest, as one sentence; null when it is. */
  readonly weakness: string | null;
  readonly birthToken: ProcessIdentity['scheme'];
  /** Version of the kernel's Landlock; null without it. A launch that names `paths` is refused then. */
  readonly landlock: number | null;
  /** Resources whose use by a run can be limited. */
  readonly limits: readonly ('memory' | 'processes' | 'cpu')[];
}

export interface HoldOrder {
  readonly leaseId: string;
  readonly spec: LaunchSpec;
  /** `spec.env`, checked, each entry `NAME=value`. */
  readonly env: readonly string[];
}

export interface StartFailure {
  readonly kind: 'failed';
  readonly step: string;
  readonly reason: string;
}

export interface Ready {
  readonly kind: 'ready';
  /** Process that ends the boundary when this one dies; the owner itself where the kernel does it. */
  readonly supervisor: ProcessIdentity;
  /** Parent of the child, which finishes the supervisor's work; null where there is none. */
  readonly reaper: ProcessIdentity | null;
  readonly child: ProcessIdentity;
  readonly boundary: Boundary;
  readonly notEnforced: readonly NotEnforced[];
}

/** A child in its boundary. Its promises never reject: what went wrong is a value. */
export interface HeldChild {
  /** Resolves once the child waits in its boundary. */
  readonly ready: Promise<Ready | StartFailure>;
  /** Lets the child run; the answer is `started`. */
  release(): void;
  readonly started: Promise<{ readonly kind: 'started' } | StartFailure>;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The controlling terminal behind the streams; null when they are pipes. */
  readonly terminal: Terminal | null;
  /** How the child itself ended. Settled at the latest when `empty` is. */
  readonly exited: Promise<ProcessExit>;
  /** Ends every process of the boundary and observes it. Call it once, at any time. */
  empty(): Promise<Cleanup>;
}

export type Cleanup =
  | { readonly empty: true }
  | { readonly empty: false; readonly evidence: readonly [Evidence, ...Evidence[]] };

export const EMPTY: Cleanup = { empty: true };
