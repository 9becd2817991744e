// A server of the benchmark's tree in a process of its own.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createInterface } from 'node:readline';

/** Runs a program on the first processor only, where nothing waits for another one to wake up. */
export const PINNED = ['taskset', '-c', '0'];

const STOP_LIMIT_MS = 10_000;

export class Server {
  #child;
  #exited;
  #lines;
  #mountpoint;

  /**
   * @param {{ words: string[], mountpoint: string, env?: NodeJS.ProcessEnv }} order `words` is the command line
   * @returns {Promise<Server>} one that answers
   */
  static async start(order) {
    await mkdir(order.mountpoint);
    const server = new Server(order);
    try {
      await server.#line();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  constructor({ words: [program, ...args], mountpoint, env }) {
    this.#mountpoint = mountpoint;
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], env });
    // A server that died is found by its output.
    this.#child.stdin.on('error', () => undefined);
    this.#exited = once(this.#child, 'exit');
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  get mountpoint() {
    return this.#mountpoint;
  }

  /** Gives a command and waits for its answer, one line. @param {string} line */
  async command(line) {
    this.#child.stdin.write(`${line}\n`);
    return await this.#line();
  }

  get pid() {
    return this.#child.pid;
  }

  /** Ends the server, and the mount also when the server died. */
  async stop() {
    this.#child.stdin.end();
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS);
    const [code] = await this.#exited;
    clearTimeout(killer);
    if (code !== 0) spawnSync('fusermount3', ['-uz', this.#mountpoint], { stdio: 'ignore' });
  }

  async #line() {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the server ended');
    return value;
  }
}
