import { setTimeout as sleep } from 'node:timers/promises';
import { BridleError } from '../../contract/errors.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import { identify } from '../../native/identity.js';
import { hasJobs } from '../../native/job.js';
import { evidence, type LeaseRecord } from '../lease-record.js';
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

/**
 * Job Objects. A job ends with the process that has its only handle, so recovery has nothing to end: it observes.
 *
 * Birth tokens are `utc:` and the creation time. What stands before the colon is what recovery takes for the boot; it is
 * the same in every boot, because the time is absolute: a process of an earlier boot is found to be gone.
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
   * Never signals. The boundary is empty when the process that had the job is gone, for the kernel ended the job then,
   * and the child has been seen to be gone, too.
   */
  async settle({ supervisor, child }: LeaseRecord): Promise<Cleanup> {
    const deadline = Date.now() + this.#options.cleanupTimeoutMs;
    for (;;) {
      const found = [supervisor, child].map((identity) => ({ identity, state: this.look(identity) }));
      const left = found.find(({ state }) => state !== 'gone');
      if (!left) return EMPTY;
      if (left.state === 'unknown' || Date.now() > deadline) {
        const kind = left.state === 'unknown' ? 'boundary_indeterminate' : 'boundary_not_empty';
        return { empty: false, evidence: [evidence(kind, `process ${left.identity.pid}: ${left.state}`)] };
      }
      await sleep(POLL_MS);
    }
  }

  /** `unknown`: a process of another user has the number, and does not let itself be looked at. */
  look(identity: ProcessIdentity): 'alive' | 'gone' | 'unknown' {
    try {
      return identify(identity.pid)?.token === identity.token ? 'alive' : 'gone';
    } catch {
      return 'unknown';
    }
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
