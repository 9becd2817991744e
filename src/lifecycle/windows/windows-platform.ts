import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { BridleError } from '../../contract/errors.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import { identify } from '../../native/identity.js';
import { hasJobs } from '../../native/job.js';
import { type Evidence, evidence, type LeaseRecord } from '../lease-record.js';
import {
  type BoundaryStrength,
  type Cleanup,
  EMPTY,
  type HeldChild,
  type HoldOrder,
  type Platform,
} from '../platform.js';
import { JobChild } from './job-child.js';

export interface WindowsOptions {
  readonly cleanupTimeoutMs: number;
}

/** Time between two looks at a process that the kernel is ending, milliseconds. */
const POLL_MS = 20;

/** Milliseconds from the epoch of creation times, 1601, to the one of JavaScript. */
const EPOCH_MS = 11_644_473_600_000;

/** What is found under the number of a recorded process. `mismatch`: another process. */
type Found = 'gone' | 'alive' | 'mismatch' | 'unknown';

/** Whether a process that was created then cannot be of this boot. */
function isOfEarlierBoot({ token }: ProcessIdentity): boolean {
  const created = Number(token.slice(token.indexOf(':') + 1)) / 10_000 - EPOCH_MS;
  return created < Date.now() - uptime() * 1000;
}

/**
 * Job Objects. A job ends with the process that has its only handle, so recovery has nothing to end: it observes.
 *
 * Birth tokens are `utc:` and the creation time. What stands before the colon is what recovery takes for the boot; it is
 * the same in every boot, because the time is absolute. An earlier boot is told by the time instead.
 */
export class WindowsPlatform implements Platform {
  readonly owner: ProcessIdentity;
  readonly strength: BoundaryStrength = {
    kind: 'job',
    weakness: null,
    birthToken: 'creationtime',
    landlock: null,
    limits: [],
  };
  readonly #options: WindowsOptions;

  /** @throws BridleError PLATFORM_UNSUPPORTED when the addon was built for another system */
  constructor(options: WindowsOptions) {
    if (!hasJobs()) throw new BridleError('PLATFORM_UNSUPPORTED', 'this build has no Job Objects');
    const owner = identify(process.pid);
    if (!owner) throw new BridleError('INTERNAL', 'this process has no identity');
    this.owner = owner;
    this.#options = options;
  }

  hold(order: HoldOrder): HeldChild {
    return new JobChild(order, { owner: this.owner, cleanupTimeoutMs: this.#options.cleanupTimeoutMs });
  }

  /**
   * Never signals. The kernel ended the job when the process that had it was gone, or is about to: the boundary is empty
   * once the child has been seen to be gone, too.
   */
  async settle({ supervisor, child }: LeaseRecord): Promise<Cleanup> {
    const deadline = Date.now() + this.#options.cleanupTimeoutMs;
    for (;;) {
      const owner = this.look(supervisor);
      const [role, identity] = owner === 'gone' ? (['child', child] as const) : (['owner', supervisor] as const);
      const found = owner === 'gone' ? find(child) : owner;
      if (found === 'gone') return EMPTY;
      if (found !== 'alive' || Date.now() > deadline) {
        return { empty: false, evidence: [evidenceOf(role, identity, found)] };
      }
      await sleep(POLL_MS);
    }
  }

  /** Another process with the number of an owner does not have its jobs. */
  look(identity: ProcessIdentity): 'alive' | 'gone' | 'unknown' {
    const found = find(identity);
    return found === 'mismatch' ? 'gone' : found;
  }

  /** There is nothing beside the processes. */
  forget(): Promise<void> {
    return Promise.resolve();
  }

  /** A job without a handle does not exist. */
  removeLeftovers(): Promise<void> {
    return Promise.resolve();
  }
}

/** `unknown`: a process of another user has the number, and does not let itself be looked at. */
function find(identity: ProcessIdentity): Found {
  let found: Found;
  try {
    const token = identify(identity.pid)?.token;
    if (token === identity.token) return 'alive';
    if (token === undefined) return 'gone';
    found = 'mismatch';
  } catch {
    found = 'unknown';
  }
  // Nothing outlives its boot, whoever has the number now.
  return isOfEarlierBoot(identity) ? 'gone' : found;
}

function evidenceOf(role: string, { pid }: ProcessIdentity, found: Exclude<Found, 'gone'>): Evidence {
  switch (found) {
    case 'alive':
      return evidence('boundary_not_empty', `the ${role}, pid ${pid}, did not end`);
    case 'mismatch':
      return evidence('identity_mismatch', `pid ${pid} is not the recorded ${role}`);
    case 'unknown':
      return evidence('boundary_indeterminate', `pid ${pid}, recorded for the ${role}, cannot be looked at`);
  }
}
