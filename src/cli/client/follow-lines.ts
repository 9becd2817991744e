import { type FileHandle, open } from 'node:fs/promises';
import { BridleError } from '../../contract/errors.js';
import { isServed } from './find-mount.js';
import { pause } from './pause.js';

const CHUNK = 256 * 1024;
const FASTEST_POLL_MS = 5;
const SLOWEST_POLL_MS = 50;
/** How long a daemon may be away (a restart) before following gives up. */
const AWAY_LIMIT_MS = 30_000;

export interface FollowOptions {
  readonly mount: string;
  readonly signal: AbortSignal;
  /** End at the end of the file instead of waiting for more. */
  readonly once?: boolean;
}

/**
 * Lines of a file of the mount while it grows, without their newlines; waits for the file to appear. Goes on at the
 * same byte after a restart of the daemon. Ends when the signal is aborted.
 *
 * It polls: inotify reports what happens through this kernel's own calls, and rows that the daemon appends on its side
 * of a FUSE mount are not among those.
 * @throws BridleError DAEMON_NOT_RUNNING when the mount stays away
 */
export async function* followLines(path: string, options: FollowOptions): AsyncGenerator<string, void, undefined> {
  await using file = new GrowingFile(path);
  let unfinished: Buffer[] = [];
  let wait = FASTEST_POLL_MS;
  let awaySince: number | undefined;
  while (!options.signal.aborted) {
    const chunk = await file.read();
    if (chunk !== undefined && chunk.length > 0) {
      const { lines, rest } = splitLines(unfinished, chunk);
      unfinished = rest;
      yield* lines;
      wait = FASTEST_POLL_MS;
      awaySince = undefined;
      continue;
    }
    if (options.once && chunk !== undefined) return;
    if (chunk === undefined && !(await isServed(options.mount))) {
      awaySince ??= performance.now();
      if (performance.now() - awaySince > AWAY_LIMIT_MS) {
        throw new BridleError('DAEMON_NOT_RUNNING', `the daemon that served ${options.mount} is gone`);
      }
    } else awaySince = undefined;
    await pause(wait, options.signal);
    wait = Math.min(wait * 1.5, SLOWEST_POLL_MS);
  }
}

/** A file read forward from byte 0, opened when it exists and again after its mount died under it. */
class GrowingFile implements AsyncDisposable {
  readonly #path: string;
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  #handle: FileHandle | undefined;
  #offset = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** The next bytes; empty at the end of the file; undefined when the file cannot be read now. */
  async read(): Promise<Buffer | undefined> {
    try {
      this.#handle ??= await open(this.#path, 'r');
      const { bytesRead } = await this.#handle.read(this.#buffer, 0, CHUNK, this.#offset);
      this.#offset += bytesRead;
      return Buffer.from(this.#buffer.subarray(0, bytesRead));
    } catch (error) {
      await this[Symbol.asyncDispose]();
      if (isAway(error)) return undefined;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}

/** Errors of a file that is not there yet, and of one whose daemon died or is being replaced. */
function isAway(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code !== undefined && ['ENOENT', 'ENOTCONN', 'ECONNABORTED', 'ESHUTDOWN', 'ENODEV', 'ESTALE'].includes(code);
}

function splitLines(unfinished: readonly Buffer[], chunk: Buffer): { lines: string[]; rest: Buffer[] } {
  const lines: string[] = [];
  let head = unfinished;
  let start = 0;
  for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
    lines.push(Buffer.concat([...head, chunk.subarray(start, end)]).toString('utf8'));
    head = [];
    start = end + 1;
  }
  return { lines, rest: start < chunk.length ? [...head, chunk.subarray(start)] : [...head] };
}
