import type { Logger } from 'pino';
import { notifySystemd } from '../native/system.js';

/**
 * Answers systemd's watchdog ($WATCHDOG_USEC) at half its period, each time after a probe of both halves of the daemon:
 * JavaScript runs the timer, the session threads answer the probe. Does nothing where there is no watchdog.
 */
export class Watchdog implements Disposable {
  readonly #probe: () => Promise<void>;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout | undefined;
  #probing = false;
  #stopped = false;

  constructor(env: NodeJS.ProcessEnv, log: Logger, probe: () => Promise<void>) {
    this.#probe = probe;
    this.#log = log;
    const periodMs = Number(env['WATCHDOG_USEC'] ?? 0) / 1000;
    const isForUs = env['WATCHDOG_PID'] === undefined || Number(env['WATCHDOG_PID']) === process.pid;
    if (periodMs > 0 && isForUs) this.#timer = setInterval(() => void this.#ping(), periodMs / 2);
  }

  async #ping(): Promise<void> {
    // A probe that hangs must not be followed by others: each one holds a thread.
    if (this.#probing) return;
    this.#probing = true;
    try {
      await this.#probe();
      if (!this.#stopped) notifySystemd('WATCHDOG=1');
    } catch (error) {
      this.#log.error({ err: error }, 'the mount does not answer');
    } finally {
      this.#probing = false;
    }
  }

  [Symbol.dispose](): void {
    this.#stopped = true;
    clearInterval(this.#timer);
  }
}
