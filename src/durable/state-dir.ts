import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { BridleError } from '../contract/errors.js';
import type { ProcessIdentity } from '../contract/identity.js';
import { replaceFileSync, unwritable } from './files.js';
import { Serials } from './serials.js';

/** What a state directory needs of the operating system. */
export interface StateDirSystem {
  /** Takes an exclusive lock that ends with the descriptor; false when somebody else holds it. */
  readonly tryLock: (fd: number) => boolean;
  readonly identify: (pid: number) => ProcessIdentity | undefined;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/;

/**
 * The directory that holds everything durable, owned by one process at a time. The lock belongs to an open file and
 * ends with the process; the row in the lock file only tells people who has it.
 */
export class StateDir {
  /** Absolute path. */
  readonly path: string;
  /** Random name of this state, made once. */
  readonly id: string;
  readonly serials: Serials;
  readonly #lock: number;
  #closed = false;

  private constructor(path: string, lock: number, id: string, serials: Serials) {
    this.path = path;
    this.#lock = lock;
    this.id = id;
    this.serials = serials;
  }

  /**
   * Makes the directory when it is missing (mode 0700) and takes its lock.
   * @param system default: the native addon
   * @throws BridleError STATE_LOCKED naming the owner's pid, STATE_UNWRITABLE, STATE_CORRUPT
   */
  static async open(path: string, system?: StateDirSystem): Promise<StateDir> {
    const { tryLock, identify } = system ?? (await nativeSystem());
    prepare(path);
    const lock = fs.openSync(join(path, 'lock'), fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    try {
      if (!tryLock(lock)) throw new BridleError('STATE_LOCKED', `${path} is in use by ${ownerOf(lock)}`);
      const owner = { ...(identify(process.pid) ?? { pid: process.pid }), since: new Date().toISOString() };
      const row = Buffer.from(`${JSON.stringify(owner)}\n`);
      fs.writeSync(lock, row, 0, row.length, 0);
      fs.ftruncateSync(lock, row.length);
      return new StateDir(path, lock, readId(path), Serials.open(path));
    } catch (error) {
      fs.closeSync(lock);
      throw error;
    }
  }

  /** Gives the lock back. Close the journal first. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    fs.closeSync(this.#lock);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function prepare(path: string): void {
  try {
    fs.mkdirSync(path, { recursive: true, mode: 0o700 });
    const { uid, mode } = fs.statSync(path);
    const own = process.geteuid?.();
    if (own !== undefined && uid !== own) throw new Error(`it belongs to uid ${uid}, not to uid ${own}`);
    // A service manager may have made it readable for everybody.
    if ((mode & 0o077) !== 0) fs.chmodSync(path, 0o700);
  } catch (error) {
    throw unwritable(path, error);
  }
}

function readId(path: string): string {
  const file = join(path, 'id');
  if (!fs.existsSync(file)) replaceFileSync(path, file, `${randomUUID()}\n`);
  const text = fs.readFileSync(file, 'latin1');
  if (!UUID.test(text)) throw new BridleError('STATE_CORRUPT', `${file} holds no id`);
  return text.trim();
}

function ownerOf(lock: number): string {
  const buffer = Buffer.alloc(1024);
  const text = buffer.toString('utf8', 0, fs.readSync(lock, buffer, 0, buffer.length, 0));
  const pid = /"pid":([0-9]+)/.exec(text)?.[1];
  return pid === undefined ? 'another process' : `process ${pid}`;
}

/** Loaded when needed, so that a program that brings its own needs no addon. */
async function nativeSystem(): Promise<StateDirSystem> {
  const [{ tryLock }, { identify }] = await Promise.all([
    import('../native/system.js'),
    import('../native/identity.js'),
  ]);
  return { tryLock, identify };
}
