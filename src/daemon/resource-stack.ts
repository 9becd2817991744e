/** Closes what was opened, last first; the part of AsyncDisposableStack that Node 20 lacks. */
export class ResourceStack implements AsyncDisposable {
  #closers: (() => Promise<void>)[] = [];

  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(async () => resource[Symbol.asyncDispose]());
    return resource;
  }

  defer(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Hands all resources to a new stack: disposing of this one then closes nothing. */
  move(): ResourceStack {
    const moved = new ResourceStack();
    moved.#closers = this.#closers;
    this.#closers = [];
    return moved;
  }

  /** Closes everything even when one closer fails, then throws the first failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      await close().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}
