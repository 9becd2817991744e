import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { until } from './until.js';

const CLI = resolve(import.meta.dirname, '../../dist/cli/main.js');

export interface TestDaemonOptions {
  /** Content of the configuration file. */
  readonly config?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * A real daemon in a process of its own, with a state directory and a mount of its own. Disposing of it kills the
 * daemon if it still runs, unmounts and removes everything.
 */
export class TestDaemon implements AsyncDisposable {
  readonly directory: string;
  readonly #env: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;
  #log = '';

  private constructor(directory: string, env: Readonly<Record<string, string>>) {
    this.directory = directory;
    this.#env = env;
  }

  static async start(options: TestDaemonOptions = {}): Promise<TestDaemon> {
    const daemon = new TestDaemon(await mkdtemp(join(tmpdir(), 'bridle-test-')), options.env ?? {});
    await writeFile(daemon.configFile, options.config ?? '');
    try {
      await daemon.start();
    } catch (error) {
      await daemon[Symbol.asyncDispose]();
      throw error;
    }
    return daemon;
  }

  get mount(): string {
    return join(this.directory, 'mount');
  }

  get state(): string {
    return join(this.directory, 'state');
  }

  get configFile(): string {
    return join(this.directory, 'config.toml');
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error('the daemon does not run');
    return pid;
  }

  /** What the daemon logged since it was made. */
  get log(): string {
    return this.#log;
  }

  agent(name = 'default'): string {
    return join(this.mount, 'agents', name);
  }

  /** Starts the daemon (again) and waits until its mount says that it is ready. */
  async start(): Promise<void> {
    const args = [CLI, 'daemon', '--mount', this.mount, '--state', this.state, '--config', this.configFile];
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.directory, ...nativeOverride(), ...this.#env };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = child;
    child.stderr.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-1_000_000);
    });
    await until(async () => {
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`the daemon ended (${child.exitCode ?? child.signalCode}):\n${this.#log}`);
      }
      return (await readStatus(this.mount)).startsWith('ready');
    }, 'the daemon is ready');
  }

  /** Ends it with a signal and waits. @returns the exit code, or the signal that ended it */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    const child = this.#process;
    if (child === undefined) throw new Error('the daemon does not run');
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill(signal);
      await exited;
    }
    this.#process = undefined;
    return child.exitCode ?? child.signalCode ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process !== undefined) await this.end('SIGTERM');
    if ((await readFile('/proc/self/mountinfo', 'utf8')).includes(` ${this.mount} `)) {
      spawnSync('umount', ['-l', this.mount]);
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Lets the sanitizer runs put their build in place of the ordinary one. */
function nativeOverride(): Record<string, string> {
  const directory = process.env['BRIDLE_NATIVE_DIR'];
  return directory === undefined ? {} : { BRIDLE_NATIVE_DIR: directory };
}

async function readStatus(mount: string): Promise<string> {
  try {
    return await readFile(join(mount, 'status'), 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    // Not mounted yet, or the dead mount of an earlier daemon.
    if (['ENOENT', 'ENOTCONN', 'ECONNABORTED'].includes(code)) return '';
    throw error;
  }
}
