import type { Readable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { type Paint, paintFor } from './color.js';

/** Exit status of a program that SIGPIPE ended, as shells report it. */
const BROKEN_PIPE = 141;

/** One output stream with what may be done on it. */
export interface Output {
  /** Resolves when the stream takes more, so that a slow reader slows the command down. */
  write(text: string): Promise<void>;
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly paint: Paint;
}

/** What a command may touch of its surroundings. */
export interface Console {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** The console of this process. A reader that went away (`| head`) ends the process quietly. */
export function processConsole(): Console {
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: outputOf(process.stdout),
    stderr: outputOf(process.stderr),
  };
}

function outputOf(stream: WriteStream): Output {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(BROKEN_PIPE);
    throw error;
  });
  return {
    write: (text) =>
      new Promise((resolve) => {
        if (stream.write(text)) resolve();
        else stream.once('drain', resolve);
      }),
    isTerminal: stream.isTTY === true,
    columns: stream.columns || 80,
    paint: paintFor(stream.isTTY === true, process.env),
  };
}
