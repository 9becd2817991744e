import * as fs from 'node:fs';
import { join } from 'node:path';
import { BridleError } from '../contract/errors.js';
import { replaceFileSync } from './files.js';

/** Serials below this one are for objects that every tree has; they are never given out. */
export const FIRST_SERIAL = 1024;
const SERIAL_LIMIT = 2 ** 44;
const BLOCK = 1024;

/**
 * Gives every object a number that no other object of this state directory ever had or gets. The file holds the first
 * number that is not reserved yet; a block is reserved on disk before the first of it is given out, so a crash wastes
 * at most the rest of a block.
 */
export class Serials {
  readonly #path: string;
  readonly #directory: string;
  #next: number;
  #reserved: number;

  private constructor(directory: string, first: number) {
    this.#path = join(directory, 'serials');
    this.#directory = directory;
    this.#next = first;
    this.#reserved = first;
  }

  /** @throws BridleError STATE_CORRUPT when the file holds no number */
  static open(directory: string): Serials {
    const path = join(directory, 'serials');
    if (!fs.existsSync(path)) return new Serials(directory, FIRST_SERIAL);
    const text = fs.readFileSync(path, 'latin1');
    if (!/^[1-9][0-9]{3,13}\n$/.test(text)) throw new BridleError('STATE_CORRUPT', `${path} holds no serial number`);
    return new Serials(directory, Number(text));
  }

  /** A new number below 2^44. Every 1024th call waits for the disk. */
  next(): number {
    if (this.#next === this.#reserved) this.#reserve();
    return this.#next++;
  }

  #reserve(): void {
    const end = this.#reserved + BLOCK;
    if (end > SERIAL_LIMIT) throw new BridleError('INTERNAL', 'all serial numbers are used');
    replaceFileSync(this.#directory, this.#path, `${end}\n`);
    this.#reserved = end;
  }
}
