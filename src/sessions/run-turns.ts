import { BridleError } from '../contract/errors.js';

interface Waiter {
  readonly run: string;
  readonly admit: () => void;
}

/** Lets one run at a time have a session; the others get it in the order in which they asked. */
export class RunTurns {
  #owner: string | undefined;
  #waiting: Waiter[] = [];

  get owner(): string | undefined {
    return this.#owner;
  }

  get idle(): boolean {
    return this.#owner === undefined && this.#waiting.length === 0;
  }

  /**
   * Resolves when the run has the session.
   * @throws BridleError INTERNAL when it has it or waits for it already; the reason of the signal when that fires first
   */
  async acquire(run: string, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#owner === run || this.#waiting.some((waiter) => waiter.run === run)) {
      throw new BridleError('INTERNAL', `run ${run} asked twice for its session`);
    }
    if (this.#owner === undefined) {
      this.#owner = run;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.#waiting = this.#waiting.filter((waiter) => waiter.run !== run);
        reject(signal?.reason as Error);
      };
      const admit = () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push({ run, admit });
    });
  }

  /** @throws BridleError INTERNAL when the run does not have the session */
  release(run: string): void {
    if (this.#owner !== run) throw new BridleError('INTERNAL', `run ${run} does not have the session`);
    const next = this.#waiting.shift();
    this.#owner = next?.run;
    next?.admit();
  }
}
