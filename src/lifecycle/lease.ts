import { randomBytes } from 'node:crypto';
import { BridleError } from '../contract/errors.js';
import type { ContainedProcess, Launcher, LaunchSpec } from '../contract/harness.js';
import { within } from './deferred.js';
import { checkLaunchSpec } from './launch-spec.js';
import { type Evidence, type LeaseRecord, newRecord, nextRecord, type Operation } from './lease-record.js';
import type { LeaseStore } from './lease-store.js';
import { type Cleanup, EMPTY, type HeldChild, type Platform, type Ready, type StartFailure } from './platform.js';

/** What every lease of one daemon has in common. */
export interface LeaseContext {
  readonly platform: Platform;
  readonly store: LeaseStore;
  readonly startTimeoutMs: number;
  readonly onStep: (step: LeaseStep) => void;
  readonly onClosed: (lease: Lease) => void;
}

/**
 * The moments between which a lease can be interrupted. Tests end the daemon at each.
 * Start: `spawned`, `held`, `recorded`, `released`, `started`. End: `closing`, `marked`, `emptied`, `removed`.
 */
export type LeaseStep =
  | 'spawned'
  | 'held'
  | 'recorded'
  | 'released'
  | 'started'
  | 'closing'
  | 'marked'
  | 'emptied'
  | 'removed';

function spawnFailed(step: string, reason: string, cause?: unknown): BridleError {
  return new BridleError('SPAWN_FAILED', `${step}: ${reason}`, { cause });
}

/** Ownership of one boundary by one run or probe. It starts at most one program and is never used again. */
export class Lease implements AsyncDisposable {
  readonly id = randomBytes(16).toString('hex');
  readonly launcher: Launcher = { launch: (spec) => this.#launch(spec) };
  readonly #context: LeaseContext;
  readonly #operation: Operation;
  #used = false;
  #held: HeldChild | undefined;
  #record: LeaseRecord | undefined;
  #recorded = false;
  #closing: Promise<Cleanup> | undefined;

  constructor(context: LeaseContext, operation: Operation) {
    this.#context = context;
    this.#operation = operation;
  }

  /**
   * Ends every process of the boundary: TERM, grace, KILL, until it is observed empty or the clean-up timeout passed.
   * The record is gone when it was empty; else it stays with the evidence. Calling it again gives the same answer.
   * @throws whatever the store throws; the processes were dealt with before
   */
  close(): Promise<Cleanup> {
    this.#used = true;
    this.#closing ??= this.#close().finally(() => this.#context.onClosed(this));
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #launch(spec: LaunchSpec): Promise<ContainedProcess> {
    if (this.#used) throw new BridleError('INTERNAL', 'a lease starts at most one process');
    this.#used = true;
    const env = checkLaunchSpec(spec);
    const held = this.#context.platform.hold({ leaseId: this.id, spec, env });
    this.#held = held;
    try {
      this.#context.onStep('spawned');
      const ready = this.#check(await within(held.ready, this.#context.startTimeoutMs), 'supervisor');
      this.#context.onStep('held');
      await this.#writeRecord(ready);
      this.#context.onStep('recorded');
      if (this.#closing) throw spawnFailed('gate', 'the lease was closed during the start');
      held.release();
      this.#context.onStep('released');
      this.#check(await within(held.started, this.#context.startTimeoutMs), 'exec');
      this.#context.onStep('started');
      const { stdin, stdout, stderr, terminal, exited } = held;
      return { pid: ready.child.pid, stdin, stdout, stderr, terminal, exited, notEnforced: ready.notEnforced };
    } catch (error) {
      throw await this.#abandon(error as Error);
    }
  }

  /** Leaves nothing of a start that failed. @returns the error to throw */
  async #abandon(error: Error): Promise<Error> {
    let note: string;
    try {
      const cleanup = await this.close();
      if (cleanup.empty) return error;
      note = 'its processes could not all be ended';
    } catch (failure) {
      note = `its record could not be removed: ${(failure as Error).message}`;
    }
    return new BridleError('SPAWN_FAILED', `${error.message}; ${note}`, { cause: error });
  }

  async #writeRecord(ready: Ready): Promise<void> {
    const { supervisor, reaper, child, boundary } = ready;
    const identities = { owner: this.#context.platform.owner, supervisor, reaper, child };
    const record = newRecord(this.id, this.#operation, identities, boundary);
    // Known before the write is tried: a write that failed half-way must be removed too.
    this.#record = record;
    try {
      await this.#put(record);
      this.#recorded = true;
    } catch (cause) {
      throw spawnFailed('record', (cause as Error).message, cause);
    }
  }

  #check<T extends { readonly kind: string }>(
    result: T | StartFailure | undefined,
    step: string,
  ): Exclude<T, StartFailure> {
    if (result === undefined) throw spawnFailed(step, `no answer in ${this.#context.startTimeoutMs} ms`);
    if (result.kind === 'failed') {
      const failure = result as StartFailure;
      throw spawnFailed(failure.step, failure.reason);
    }
    return result as Exclude<T, StartFailure>;
  }

  async #close(): Promise<Cleanup> {
    const held = this.#held;
    if (!held) return EMPTY;
    this.#context.onStep('closing');
    // The mark is for people who look at the record meanwhile; the clean-up does not wait for a disk.
    const marked = this.#mark();
    const cleanup = await held.empty();
    this.#endStreams(held, cleanup);
    this.#context.onStep('emptied');
    // The store keeps the order of calls, so one write need not be waited for before the other.
    const [failure] = await Promise.all([marked, this.#settleRecord(cleanup)]);
    if (failure) throw failure;
    return cleanup;
  }

  /**
   * Every writer of an empty boundary is gone, so a reader that is under way gets the rest and then the end. A stream
   * that nobody reads would keep its descriptor for ever.
   */
  #endStreams(held: HeldChild, cleanup: Cleanup): void {
    held.stdin.destroy();
    for (const stream of [held.stdout, held.stderr]) {
      const read = stream.listenerCount('data') + stream.listenerCount('readable') > 0;
      if (!cleanup.empty || !read) stream.destroy();
    }
  }

  async #mark(): Promise<Error | undefined> {
    try {
      if (!this.#recorded) return undefined;
      await this.#update('cleaning');
      this.#context.onStep('marked');
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  async #update(state: LeaseRecord['state'], found: readonly Evidence[] = []): Promise<void> {
    if (!this.#record) return;
    this.#record = nextRecord(this.#record, state, found);
    await this.#put(this.#record);
  }

  async #put(record: LeaseRecord): Promise<void> {
    if (await this.#context.store.put(record)) return;
    throw new BridleError('INTERNAL', `the record of lease ${this.id} was changed by somebody else`);
  }

  async #settleRecord(cleanup: Cleanup): Promise<void> {
    if (!cleanup.empty) {
      await this.#update('cleanup_failed', cleanup.evidence);
      return;
    }
    if (!this.#record) return;
    await this.#context.store.remove(this.#record);
    this.#context.onStep('removed');
    if (this.#record.boundary.kind === 'subreaper') await this.#context.platform.forget(this.id);
  }
}
