import { randomBytes } from 'node:crypto';
import { BridleError } from '../contract/errors.js';
import type { ContainedProcess, Launcher, LaunchSpec } from '../contract/harness.js';
import type { ProcessIdentity } from '../contract/identity.js';
import { type Cleanup, EMPTY, emptyBoundary, removeCgroup } from './boundary.js';
import { within } from './deferred.js';
import { checkLaunchSpec } from './launch-spec.js';
import {
  type Boundary,
  type Evidence,
  evidence,
  type LeaseRecord,
  newRecord,
  nextRecord,
  type Operation,
} from './lease-record.js';
import type { LeaseStore } from './lease-store.js';
import { type Finish, type StartFailure, Supervisor } from './supervisor.js';
import { removeWitness } from './witness.js';

/** What every lease of one daemon has in common. */
export interface LeaseContext {
  readonly store: LeaseStore;
  readonly supervisorExecutable: string;
  readonly owner: ProcessIdentity;
  /** Path of the cgroup of a lease, or an empty text when boundaries have none. */
  readonly cgroupOf: (leaseId: string) => string;
  readonly witnessOf: (leaseId: string) => string;
  readonly graceMs: number;
  readonly cleanupTimeoutMs: number;
  readonly startTimeoutMs: number;
  readonly onClosed: (lease: Lease) => void;
}

/** A supervisor that neither reports nor ends this long after its own deadline is killed. */
const OVERDUE_MS = 2_000;

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
  #supervisor: Supervisor | undefined;
  #child: { readonly identity: ProcessIdentity; readonly boundary: Boundary } | undefined;
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
    const supervisor = new Supervisor(this.#context.supervisorExecutable);
    this.#supervisor = supervisor;
    try {
      const child = await this.#gate(supervisor, spec, env);
      await this.#writeRecord(supervisor, child);
      if (this.#closing) throw spawnFailed('gate', 'the lease was closed during the start');
      supervisor.go();
      this.#check(await within(supervisor.started, this.#context.startTimeoutMs), 'exec');
      const { stdin, stdout, stderr, exited } = supervisor;
      return { pid: child.pid, stdin, stdout, stderr, exited };
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

  /** Has the supervisor make the boundary and the child that waits in it. */
  async #gate(supervisor: Supervisor, spec: LaunchSpec, env: readonly string[]): Promise<ProcessIdentity> {
    const cgroup = this.#context.cgroupOf(this.id);
    supervisor.start({
      argv: spec.argv,
      env,
      cwd: spec.cwd,
      cgroup,
      witness: this.#context.witnessOf(this.id),
      graceMs: this.#context.graceMs,
      cleanupTimeoutMs: this.#context.cleanupTimeoutMs,
    });
    const gated = this.#check(await within(supervisor.gated, this.#context.startTimeoutMs), 'supervisor');
    this.#child = {
      identity: gated.child,
      boundary:
        gated.inode === null
          ? { kind: 'subreaper' }
          : { kind: 'cgroup+subreaper', cgroup: { path: cgroup, inode: gated.inode } },
    };
    return gated.child;
  }

  async #writeRecord(supervisor: Supervisor, child: ProcessIdentity): Promise<void> {
    const { identity } = supervisor;
    if (!identity || !this.#child) throw spawnFailed('supervisor', 'it ended during the start');
    const identities = { owner: this.#context.owner, supervisor: identity, child };
    const record = newRecord(this.id, this.#operation, identities, this.#child.boundary);
    // Known before the write is tried: a write that failed half-way must be removed too.
    this.#record = record;
    try {
      await this.#context.store.put(record);
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
    const supervisor = this.#supervisor;
    if (!supervisor) return EMPTY;
    // The mark is for people who look at the record meanwhile; the clean-up does not wait for a disk.
    const marked = this.#mark();
    supervisor.cleanUp();
    const cleanup = await this.#observe(supervisor, await this.#finish(supervisor));
    this.#endStreams(supervisor, cleanup);
    const failure = await marked;
    await this.#settleRecord(cleanup);
    if (failure) throw failure;
    return cleanup;
  }

  async #finish(supervisor: Supervisor): Promise<Finish> {
    const patience = this.#context.cleanupTimeoutMs + OVERDUE_MS;
    const finish = await within(supervisor.finished, patience);
    if (finish) return finish;
    supervisor.kill();
    return supervisor.finished;
  }

  async #observe(supervisor: Supervisor, finish: Finish): Promise<Cleanup> {
    switch (finish.kind) {
      case 'empty':
        return EMPTY;
      case 'not-empty': {
        const [first = 'the supervisor could not name a survivor', ...rest] = finish.survivors;
        const found = (detail: string): Evidence => evidence('boundary_not_empty', detail);
        return { empty: false, evidence: [found(first), ...rest.map(found)] };
      }
      case 'lost':
        return await this.#emptyWithout(supervisor);
    }
  }

  /** The supervisor was killed: what it had started is emptied from here. */
  async #emptyWithout(supervisor: Supervisor): Promise<Cleanup> {
    if (this.#child) {
      return emptyBoundary(this.#child.boundary, this.#child.identity, this.#context.cleanupTimeoutMs);
    }
    // It never reported a child. A child that waits at its gate starts nothing and dies with the supervisor.
    supervisor.kill();
    const cgroup = this.#context.cgroupOf(this.id);
    if (cgroup !== '') await removeCgroup(cgroup);
    return EMPTY;
  }

  /**
   * Every writer of an empty boundary is gone, so a reader that is under way gets the rest and then the end. A stream
   * that nobody reads would keep its descriptor for ever.
   */
  #endStreams(supervisor: Supervisor, cleanup: Cleanup): void {
    supervisor.stdin.destroy();
    for (const stream of [supervisor.stdout, supervisor.stderr]) {
      const read = stream.listenerCount('data') + stream.listenerCount('readable') > 0;
      if (!cleanup.empty || !read) stream.destroy();
    }
  }

  async #mark(): Promise<Error | undefined> {
    try {
      if (this.#recorded) await this.#update('cleaning');
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  async #update(state: LeaseRecord['state'], found: readonly Evidence[] = []): Promise<void> {
    if (!this.#record) return;
    this.#record = nextRecord(this.#record, state, found);
    await this.#context.store.put(this.#record);
  }

  async #settleRecord(cleanup: Cleanup): Promise<void> {
    if (!cleanup.empty) {
      await this.#update('cleanup_failed', cleanup.evidence);
      return;
    }
    if (!this.#record) return;
    await this.#context.store.remove(this.id);
    if (this.#child?.boundary.kind === 'subreaper') await removeWitness(this.#context.witnessOf(this.id));
  }
}
