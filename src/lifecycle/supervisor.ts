import { Socket } from 'node:net';
import { BridleError } from '../contract/errors.js';
import type { ProcessExit } from '../contract/harness.js';
import type { ProcessIdentity } from '../contract/identity.js';
import { identify } from '../native/identity.js';
import { signalProcess, spawnSupervisor } from '../native/process.js';
import { Deferred } from './deferred.js';
import { encodeCleanUp, encodeGo, encodeStart, type Report, ReportDecoder, type StartOrder } from './protocol.js';

const SIGKILL = 9;

export interface StartFailure {
  readonly kind: 'failed';
  readonly step: string;
  readonly reason: string;
}

export type Gated = Extract<Report, { kind: 'gated' }>;

/** How a supervisor ended: with its report on the boundary, or without one. */
export type Finish =
  | { readonly kind: 'empty' }
  | { readonly kind: 'not-empty'; readonly survivors: readonly string[] }
  | { readonly kind: 'lost'; readonly status: number };

/**
 * One running supervisor process. Its promises never reject: what went wrong is a value. Every promise is settled when
 * `finished` is.
 */
export class Supervisor {
  readonly identity: ProcessIdentity | undefined;
  readonly stdin: Socket;
  readonly stdout: Socket;
  readonly stderr: Socket;
  readonly #control: Socket;
  readonly #decoder = new ReportDecoder();
  readonly #gated = new Deferred<Gated | StartFailure>();
  readonly #started = new Deferred<{ readonly kind: 'started' } | StartFailure>();
  readonly #exited = new Deferred<ProcessExit>();
  readonly #finished = new Deferred<Finish>();
  readonly #left = new Deferred<number>();
  readonly #silent = new Deferred<void>();
  #outcome: Finish | undefined;

  /** @throws BridleError SPAWN_FAILED when the executable cannot be started */
  constructor(executable: string) {
    let handle: ReturnType<typeof spawnSupervisor>;
    try {
      handle = spawnSupervisor(executable, this.#left.resolve);
    } catch (cause) {
      throw new BridleError('SPAWN_FAILED', `supervisor: ${(cause as Error).message}`, { cause });
    }
    this.identity = identify(handle.pid);
    this.#control = new Socket({ fd: handle.control, readable: true, writable: true, allowHalfOpen: true });
    this.stdin = new Socket({ fd: handle.stdin, readable: false, writable: true });
    this.stdout = new Socket({ fd: handle.stdout, readable: true, writable: false });
    this.stderr = new Socket({ fd: handle.stderr, readable: true, writable: false });
    this.#listen();
    void this.#watchEnd();
  }

  get gated(): Promise<Gated | StartFailure> {
    return this.#gated.promise;
  }

  get started(): Promise<{ readonly kind: 'started' } | StartFailure> {
    return this.#started.promise;
  }

  get exited(): Promise<ProcessExit> {
    return this.#exited.promise;
  }

  get finished(): Promise<Finish> {
    return this.#finished.promise;
  }

  start(order: StartOrder): void {
    this.#control.write(encodeStart(order));
  }

  /** Opens the gate. */
  go(): void {
    this.#control.write(encodeGo());
  }

  /** Asks for the clean-up; the answer is `finished`. */
  cleanUp(): void {
    if (this.#control.writable) this.#control.write(encodeCleanUp());
  }

  /** Ends a supervisor that does not answer. The kernel then kills the child; the rest of its boundary is ours. */
  kill(): void {
    if (this.identity) signalProcess(this.identity, SIGKILL);
    this.#control.destroy();
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
    // The supervisor waits for this after its last report.
    this.#control.on('end', () => this.#control.destroy());
    // A channel that breaks is a channel that ended: what follows from it is decided by the exit status.
    this.#control.on('error', () => this.#silent.resolve());
    this.#control.on('close', () => this.#silent.resolve());
    // A program may close its input before it has read it all. Writers learn of it by their own callback or pipeline.
    this.stdin.on('error', () => this.stdin.destroy());
  }

  #take(report: Report): void {
    switch (report.kind) {
      case 'gated':
        this.#gated.resolve(report);
        break;
      case 'started':
        this.#started.resolve(report);
        break;
      case 'failed':
        this.#fail(report.step, report.errno);
        break;
      case 'exited':
        this.#fail('start', 'the child ended before it executed its program');
        this.#exited.resolve({ code: report.code, signal: report.signal });
        break;
      case 'empty':
        this.#outcome = { kind: 'empty' };
        break;
      case 'not-empty':
        this.#outcome = { kind: 'not-empty', survivors: report.survivors };
        break;
    }
  }

  /** Settles what has not been settled yet. */
  #fail(step: string, reason: string): void {
    const failure: StartFailure = { kind: 'failed', step, reason };
    this.#gated.resolve(failure);
    this.#started.resolve(failure);
  }

  async #watchEnd(): Promise<void> {
    const status = await this.#left.promise;
    // Its last report may still be on the way: the channel's end comes after it.
    await this.#silent.promise;
    this.#fail('supervisor', `it ended with status ${status}`);
    // Without a report the child was killed by the kernel when its parent died.
    this.#exited.resolve({ code: null, signal: SIGKILL });
    this.#finished.resolve(this.#outcome ?? { kind: 'lost', status });
  }
}
