import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

const CLIENTS = resolve(import.meta.dirname, '../../fixtures/clients');

export type ClientKind = 'sh' | 'node' | 'python';

const COMMANDS: Record<ClientKind, readonly [string, ...string[]]> = {
  sh: ['/bin/sh', `${CLIENTS}/client.sh`],
  node: [process.execPath, `${CLIENTS}/client.mjs`],
  python: ['python3', `${CLIENTS}/client.py`],
};

/** Client processes that hand requests in at the same time, each one after another. */
export class Load implements AsyncDisposable {
  /** Ids in the order in which clients saw their acknowledgement. */
  readonly acknowledged: string[] = [];
  readonly #processes: ChildProcess[] = [];
  readonly #done: Promise<void>[] = [];

  constructor(agent: string, options: { kinds: readonly ClientKind[]; processes: number; each: number }) {
    for (let index = 0; index < options.processes; index++) {
      const kind = options.kinds[index % options.kinds.length] ?? 'sh';
      const [program, ...args] = COMMANDS[kind];
      const child = spawn(program, [...args, agent, `${kind}${index}`, String(options.each)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      createInterface(child.stdout).on('line', (id) => this.acknowledged.push(id));
      this.#processes.push(child);
      this.#done.push(finished(child, `${kind}${index}`));
    }
  }

  /** Resolves when every client has handed in all of its requests. */
  async finish(): Promise<void> {
    await Promise.all(this.#done);
  }

  /** Ends the clients wherever they are. What they acknowledged stands. */
  async stop(): Promise<void> {
    for (const child of this.#processes) child.kill('SIGKILL');
    await Promise.allSettled(this.#done);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

async function finished(child: ChildProcess, name: string): Promise<void> {
  await once(child, 'close');
  if (child.exitCode !== 0) throw new Error(`client ${name} ended with ${child.exitCode ?? child.signalCode}`);
}
