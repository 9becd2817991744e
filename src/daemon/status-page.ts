import type { Logger } from 'pino';
import type { BoundaryStrength } from '../lifecycle/lifecycle.js';
import type { Mount } from '../mount/mount.js';
import type { Service } from '../service/service.js';

/** How often the page may change. A change of state (ready, stopping) is shown at once. */
const REFRESH_MS = 500;
/** How often the harnesses are asked for their health. */
const HEALTH_MS = 5_000;

export interface StatusFacts {
  readonly version: string;
  readonly strength: BoundaryStrength;
}

/** Keeps `status`, `status.json` and the harnesses' info in the mount true. */
export class StatusPage implements AsyncDisposable {
  readonly #mount: Mount;
  readonly #service: Service;
  readonly #facts: StatusFacts;
  readonly #log: Logger;
  readonly #started = new Date().toISOString();
  readonly #timer: NodeJS.Timeout;
  readonly #health: NodeJS.Timeout;
  #state = 'starting';
  #shown = '';

  constructor(mount: Mount, service: Service, facts: StatusFacts, log: Logger) {
    this.#log = log;
    this.#mount = mount;
    this.#service = service;
    this.#facts = facts;
    this.#show();
    this.#timer = setInterval(() => this.#show(), REFRESH_MS);
    this.#health = setInterval(() => void this.#refresh(), HEALTH_MS);
  }

  set(state: 'ready' | 'stopping'): void {
    this.#state = state;
    this.#show();
  }

  async #refresh(): Promise<void> {
    try {
      await this.#mount.refreshHarnesses();
    } catch (error) {
      this.#log.error({ err: error }, 'the health of the harnesses cannot be shown');
    }
  }

  #show(): void {
    const { version, strength } = this.#facts;
    const counts = this.#service.counts();
    const status = {
      schema: 'bridle.status/v1',
      version,
      state: this.#state,
      pid: process.pid,
      started: this.#started,
      boundary: strength.kind,
      weakness: strength.weakness,
      identity: strength.birthToken,
      landlock: strength.landlock,
      limits: strength.limits,
      ...counts,
    };
    const text = JSON.stringify(status);
    if (text === this.#shown) return;
    this.#shown = text;
    const { running, waiting, answered } = counts;
    this.#mount.setStatus(`${this.#state}: ${running} running, ${waiting} waiting, ${answered} answered`, status);
  }

  [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    clearInterval(this.#health);
    return Promise.resolve();
  }
}
