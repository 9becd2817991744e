import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Program extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Complete lines of its standard output so far. */
  readonly lines: readonly string[];
  /** Resolves when it has printed this many lines. */
  printed(count: number): Promise<void>;
  /** Resolves with exit code and signal after all of its output was read. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** Starts a program of this folder, which works on the compiled code. `limitBlocks` is a limit of file size (512 bytes). */
export function startProgram(name: string, args: readonly string[], limitBlocks?: number): Program {
  const script = fileURLToPath(new URL(name, import.meta.url));
  const command = [process.execPath, script, ...args];
  const limited = ['/bin/sh', '-c', `ulimit -f ${limitBlocks} && exec "$@"`, 'sh', ...command];
  const [file = '', ...rest] = limitBlocks === undefined ? command : limited;
  const child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const waiters = new Set<() => void>();
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => {
    lines.push(line);
    for (const waiter of waiters) waiter();
  });
  const ended = Promise.all([once(child, 'close'), once(reader, 'close')]).then(([[code, signal]]) => {
    for (const waiter of waiters) waiter();
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  return {
    child,
    lines,
    ended,
    printed: (count) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (lines.length >= count) resolve();
          else if (child.exitCode !== null) reject(new Error(`${name} ended after ${lines.length} lines`));
          else return;
          waiters.delete(check);
        };
        waiters.add(check);
        check();
      }),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
