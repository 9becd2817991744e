import { setTimeout as sleep } from 'node:timers/promises';
import type { ContainedProcess, ProcessExit } from '../contract/harness.js';

/** Quiet time after the program's exit before descendants that still hold its stdout are left behind. */
const DRAIN_MS = 2000;
/** Quiet time after the program's last word before it is treated as stuck. */
const SETTLE_MS = 10_000;
/** Wait for the program's exit after its stdout was closed. */
const EXIT_MS = 10_000;
const STDERR_WAIT_MS = 500;
const STDERR_BYTES = 2048;

/** Why reading stopped before the end of the stream. */
export type EarlyStop = 'aborted' | 'held-open' | 'stuck';

/**
 * Reads the output of one program until its end, or until one of the ends that are none: the run was aborted, the
 * program is gone but a descendant holds its stdout, or it said its last word and does not go away.
 */
export class ProcessOutput implements AsyncDisposable {
  readonly #process: ContainedProcess;
  readonly #signal: AbortSignal;
  readonly #settled: () => boolean;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #onAbort = (): void => this.#stop('aborted');
  readonly #stderr: Promise<void>;
  #stderrTail: Buffer = Buffer.alloc(0);
  #exit: ProcessExit | undefined;
  #waiting = false;
  #timer: NodeJS.Timeout | undefined;
  #stopped: EarlyStop | undefined;
  #readError: string | undefined;

  /** @param settled whether the program has said its last word */
  constructor(process: ContainedProcess, signal: AbortSignal, settled: () => boolean) {
    this.#process = process;
    this.#signal = signal;
    this.#settled = settled;
    this.#chunks = process.stdout[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    this.#stderr = this.#collectStderr();
    process.exited.then(
      (exit) => this.#onExit(exit),
      () => this.#onExit({ code: null, signal: null }),
    );
    if (signal.aborted) this.#stop('aborted');
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  get stopped(): EarlyStop | undefined {
    return this.#stopped;
  }

  /** Message of a read error on stdout, else undefined. */
  get readError(): string | undefined {
    return this.#readError;
  }

  /** The next chunk of stdout, or undefined when there will be none. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#stopped !== undefined) return undefined;
    this.#waiting = true;
    this.#watchQuiet();
    try {
      const result = await this.#chunks.next();
      return result.done === true || this.#stopped !== undefined ? undefined : result.value;
    } catch (cause) {
      // Destroying the stream is how a wait is ended, and shows here as a premature close.
      if (this.#stopped === undefined) this.#readError = cause instanceof Error ? cause.message : String(cause);
      return undefined;
    } finally {
      this.#waiting = false;
      clearTimeout(this.#timer);
    }
  }

  /** How the program ended, or undefined when it did not within the grace or the run was aborted. */
  async exit(): Promise<ProcessExit | undefined> {
    if (this.#exit !== undefined || this.#stopped === 'aborted' || this.#stopped === 'stuck') return this.#exit;
    await within(this.#process.exited, EXIT_MS, this.#signal);
    if (this.#signal.aborted) this.#stopped = 'aborted';
    return this.#exit;
  }

  /** The last 2 KiB of stderr, after a short wait for what is still on its way. */
  async stderrTail(): Promise<string> {
    await within(this.#stderr, STDERR_WAIT_MS, this.#signal);
    return this.#stderrTail
      .toString('utf8')
      .replace(/^\uFFFD+/, '')
      .trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#process.stdout.destroy();
    this.#process.stderr.destroy();
    this.#process.stdin.destroy();
  }

  async #collectStderr(): Promise<void> {
    try {
      for await (const chunk of this.#process.stderr as AsyncIterable<Uint8Array>) {
        this.#stderrTail = Buffer.concat([this.#stderrTail, chunk]).subarray(-STDERR_BYTES);
      }
    } catch (cause) {
      // Closing our end while the program lives ends this loop with an error; what was read until then is the tail.
      const code = (cause as NodeJS.ErrnoException).code;
      if (code !== 'ERR_STREAM_PREMATURE_CLOSE') this.#stderrTail = Buffer.from(`(stderr: ${code ?? 'read error'})`);
    }
  }

  #onExit(exit: ProcessExit): void {
    this.#exit = exit;
    if (this.#waiting) this.#watchQuiet();
  }

  /** Armed only while we wait for data: a slow consumer must not look like a silent program. */
  #watchQuiet(): void {
    clearTimeout(this.#timer);
    if (this.#exit !== undefined) this.#timer = setTimeout(() => this.#stop('held-open'), DRAIN_MS);
    else if (this.#settled()) this.#timer = setTimeout(() => this.#stop('stuck'), SETTLE_MS);
  }

  #stop(reason: EarlyStop): void {
    this.#stopped ??= reason;
    this.#process.stdout.destroy();
  }
}

/** Waits until the promise settles, the time is over, or the signal fires, whichever is first. Never rejects. */
async function within(promise: Promise<unknown>, ms: number, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const timer = sleep(ms, undefined, { signal: AbortSignal.any([signal, done.signal]) });
  await Promise.allSettled([Promise.race([promise, timer]).finally(() => done.abort())]);
}
