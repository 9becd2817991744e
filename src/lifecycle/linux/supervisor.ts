import { Socket } from 'node:net';
import { BridleError } from '../../contract/errors.js';
import type { ProcessExit, TerminalSize } from '../../contract/harness.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import { identify } from '../../native/identity.js';
import { type SupervisorHandle, signalProcess, spawnSupervisor } from '../../native/process.js';
import { Deferred, within } from '../deferred.js';
import type { StartFailure } from '../platform.js';
import { Gate } from './gate.js';
import { encodeCleanUp, encodeResize, encodeStart, type Report, ReportDecoder, type StartOrder } from './protocol.js';

const SIGKILL = 9;
/** A supervisor that neither reports nor ends this long after its own deadline is killed. */
const OVERDUE_MS = 2_000;

/** What a shell returns for a program that cannot be executed. */
const NOT_EXECUTED = 127;

export type Gated = Extract<Report, { kind: 'gated' }>;

/** How a supervisor ended: with a report on the boundary, or without one. */
export type Finish =
  | { readonly kind: 'empty' }
  | { readonly kind: 'not-empty'; readonly survivors: readonly string[] }
  | { readonly kind: 'lost'; readonly status: number };

export interface SupervisorOptions {
  readonly executable: string;
  readonly leaseId: string;
  readonly scheme: ProcessIdentity['scheme'];
}

/**
 * One running supervisor and the reaper below it. Its promises never reject: what went wrong is a value. Every promise
 * is settled when `finished` is.
 */
export class Supervisor {
  readonly gate: Gate;
  readonly stdin: Socket;
  readonly stdout: Socket;
  readonly stderr: Socket;
  readonly #options: SupervisorOptions;
  readonly #control: Socket;
  readonly #decoder = new ReportDecoder();
  readonly #identity = new Deferred<ProcessIdentity | undefined>();
  readonly #gated = new Deferred<Gated | StartFailure>();
  readonly #exited = new Deferred<ProcessExit>();
  readonly #reported = new Deferred<Finish>();
  readonly #left = new Deferred<number>();
  readonly #silent = new Deferred<void>();
  #reaper: ProcessIdentity | undefined;

  /** @throws BridleError SPAWN_FAILED when there are no descriptors left */
  constructor(options: SupervisorOptions, order: StartOrder) {
    this.#options = options;
    const bytes = encodeStart(order);
    const handle = this.#spawn(bytes);
    // The supervisor is at work meanwhile.
    this.#control = new Socket({ fd: handle.control, readable: true, writable: true, allowHalfOpen: true });
    this.gate = new Gate(handle.gate);
    if (handle.sent < bytes.length) this.#control.write(bytes.subarray(handle.sent));
    this.stdin = new Socket({ fd: handle.stdin, readable: false, writable: true });
    this.stdout = new Socket({ fd: handle.stdout, readable: true, writable: false });
    this.stderr = new Socket({ fd: handle.stderr, readable: true, writable: false });
    this.#listen();
  }

  /** Settled at the latest with `finished`; undefined when there is no such process, or no more. */
  get identity(): Promise<ProcessIdentity | undefined> {
    return this.#identity.promise;
  }

  get gated(): Promise<Gated | StartFailure> {
    return this.#gated.promise;
  }

  get exited(): Promise<ProcessExit> {
    return this.#exited.promise;
  }

  /** Sets the size of the child's terminal. */
  resize(size: TerminalSize): void {
    if (this.#control.writable) this.#control.write(encodeResize(size));
  }

  /**
   * Asks for the clean-up and waits for its report. A reaper that does not answer is killed, so that the supervisor
   * takes its work over; a supervisor that does not answer or leave either is killed, too.
   * @param patienceMs time that the clean-up itself may take
   */
  async cleanUp(patienceMs: number): Promise<Finish> {
    this.gate.close();
    if (this.#control.writable) this.#control.write(encodeCleanUp());
    const overdueMs = patienceMs + OVERDUE_MS;
    let finish = await within(this.#reported.promise, overdueMs);
    if (!finish && this.#reaper) {
      this.#kill(this.#reaper);
      finish = await within(this.#reported.promise, overdueMs);
    }
    const left = finish && (await within(this.#left.promise, OVERDUE_MS));
    if (left === undefined) await this.#killSupervisor();
    const status = await this.#left.promise;
    this.#control.destroy();
    this.#settle({ kind: 'lost', status });
    return await this.#reported.promise;
  }

  #spawn(order: Buffer): SupervisorHandle {
    const { executable, leaseId, scheme } = this.#options;
    const onSpawn = (pid: number | null, failure?: string): void => {
      this.#identity.resolve(pid === null ? undefined : identify(pid, scheme));
      if (failure === undefined) return;
      this.#fail('supervisor', failure);
      this.#left.resolve(NOT_EXECUTED);
    };
    try {
      return spawnSupervisor(executable, leaseId, order, onSpawn, this.#left.resolve);
    } catch (cause) {
      throw new BridleError('SPAWN_FAILED', `supervisor: ${(cause as Error).message}`, { cause });
    }
  }

  async #killSupervisor(): Promise<void> {
    const identity = await this.#identity.promise;
    if (identity) this.#kill(identity);
  }

  #kill(identity: ProcessIdentity): void {
    signalProcess(identity, SIGKILL, { lease: this.#options.leaseId, cgroup: '' });
  }

  #listen(): void {
    this.#control.on('data', (chunk) => {
      try {
        for (const report of this.#decoder.push(chunk)) this.#take(report);
      } catch (error) {
        this.#fail('protocol', (error as Error).message);
        this.#control.destroy();
      }
    });
    // Supervisor and reaper wait for this after the last report.
    this.#control.on('end', () => this.#control.destroy());
    // A channel that breaks is a channel that ended: what follows from it is decided by the exit status.
    this.#control.on('error', () => this.#silent.resolve());
    this.#control.on('close', () => this.#silent.resolve());
    // A program may close its input before it has read it all. Writers learn of it by their own callback or pipeline.
    this.stdin.on('error', () => this.stdin.destroy());
    void this.#watchEnd();
  }

  #take(report: Report): void {
    switch (report.kind) {
      case 'gated':
        this.#reaper = report.reaper;
        this.#gated.resolve(report);
        break;
      case 'failed':
        this.#fail(report.step, report.errno);
        break;
      case 'exited':
        this.#exited.resolve({ code: report.code, signal: report.signal });
        break;
      case 'empty':
        this.#settle({ kind: 'empty' });
        break;
      case 'not-empty':
        this.#settle({ kind: 'not-empty', survivors: report.survivors });
        break;
    }
  }

  /** Settles what has not been settled yet. */
  #fail(step: string, reason: string): void {
    this.#gated.resolve({ kind: 'failed', step, reason });
  }

  #settle(finish: Finish): void {
    this.#fail('supervisor', 'it ended');
    this.#reported.resolve(finish);
    // Without a report the child was killed by the kernel when its parent died.
    this.#exited.resolve({ code: null, signal: SIGKILL });
  }

  async #watchEnd(): Promise<void> {
    const status = await this.#left.promise;
    // Its last report may still be on the way: the channel's end comes after it.
    await this.#silent.promise;
    this.#fail('supervisor', `it ended with status ${status}`);
    this.#settle({ kind: 'lost', status });
  }
}
