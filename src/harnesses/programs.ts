import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { BridleError } from '../contract/errors.js';
import type { HarnessHealth } from '../contract/harness.js';

/** A program that may be installed, missing, or replaced while we run: looked up again each time it matters. */
export class Program {
  readonly #name: string;
  readonly #path: string;

  /**
   * @param name a bare name, searched in the absolute directories of `path`, or an absolute path
   */
  constructor(name: string, path: string) {
    this.#name = name;
    this.#path = path;
  }

  /** Absolute path of the executable, or null when there is none. */
  find(): string | null {
    if (isAbsolute(this.#name)) return isExecutable(this.#name) ? this.#name : null;
    if (this.#name.includes('/')) return null;
    const directories = this.#path.split(':').filter((directory) => isAbsolute(directory));
    return directories.map((directory) => join(directory, this.#name)).find(isExecutable) ?? null;
  }

  health(): HarnessHealth {
    const missing = this.find() === null;
    return { healthy: !missing, reason: missing ? this.#missing() : null };
  }

  /** @throws BridleError HARNESS_UNAVAILABLE when there is none */
  require(): string {
    const found = this.find();
    if (found === null) throw new BridleError('HARNESS_UNAVAILABLE', this.#missing());
    return found;
  }

  #missing(): string {
    return isAbsolute(this.#name)
      ? `${this.#name} is missing or not executable`
      : `no executable "${this.#name}" on PATH`;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
