/**
 * Starts jobs in order: at most `limit` at once, and at most one at a time for each key (a session). A job that waits
 * for its session takes no place from others.
 */
export class Scheduler {
  readonly #limit: number;
  readonly #ready: (() => Promise<void>)[] = [];
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #active = 0;
  #stopped = false;
  #idle: (() => void) | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get active(): number {
    return this.#active;
  }

  /** @param job must not reject */
  add(key: string, job: () => Promise<void>): void {
    const keyed = async () => {
      await job();
      this.#next(key);
    };
    const line = this.#waiting.get(key);
    if (line === undefined) {
      this.#waiting.set(key, []);
      this.#ready.push(keyed);
    } else {
      line.push(keyed);
    }
    this.#pump();
  }

  /** Starts nothing more and resolves when the active jobs have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #next(key: string): void {
    const line = this.#waiting.get(key);
    const following = line?.shift();
    if (following === undefined) this.#waiting.delete(key);
    else this.#ready.push(following);
  }

  #pump(): void {
    while (!this.#stopped && this.#active < this.#limit) {
      const job = this.#ready.shift();
      if (job === undefined) return;
      this.#active += 1;
      void job().then(() => {
        this.#active -= 1;
        if (this.#active === 0) this.#idle?.();
        this.#pump();
      });
    }
  }
}
