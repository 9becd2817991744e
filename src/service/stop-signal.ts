import type { StopReason } from './terminal.js';

/**
 * The one abort signal of a run and why it fired: its wall-clock limit, its silence, or the daemon going down. The
 * first reason stays.
 */
export class StopSignal implements Disposable {
  readonly #controller = new AbortController();
  readonly #wall: NodeJS.Timeout;
  readonly #idleMs: number | undefined;
  #idle: NodeJS.Timeout | undefined;
  #reason: StopReason | undefined;

  /** @param limits milliseconds; no `idleMs` means that silence is never a reason */
  constructor(limits: { wallMs: number; idleMs: number | undefined }) {
    this.#wall = setTimeout(() => this.stop('timeout'), limits.wallMs);
    this.#idleMs = limits.idleMs;
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  /** The harness said something: the silence starts anew. */
  heard(): void {
    if (this.#idleMs === undefined || this.#reason !== undefined) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.stop('idle'), this.#idleMs);
  }

  stop(reason: StopReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#controller.abort();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#wall);
    clearTimeout(this.#idle);
  }
}
