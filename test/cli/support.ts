import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const DEADLINE_MS = 30_000;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

/** A running `bridle` command; `ended` resolves when it has. */
export function start(
  words: readonly string[],
  options: StartOptions = {},
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [MAIN, ...words], { env: { ...process.env, ...options.env } });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  child.stdin.end(options.input ?? '');
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...output }));
  return { child, ended };
}

export async function bridle(words: readonly string[], options: StartOptions = {}): Promise<Ended> {
  return await start(words, options).ended;
}

/** Waits for a condition; the deadline is generous because only its order matters. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error(`never: ${what}`);
    await sleep(10);
  }
}

/** A daemon in a process of its own with a place of its own; everything is gone after disposal. */
export class TestDaemon implements AsyncDisposable {
  readonly directory: string;
  readonly mount: string;
  readonly state: string;
  readonly env: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  #log = '';

  private constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.directory = directory;
    this.mount = join(directory, 'mount');
    this.state = join(directory, 'state');
    this.env = { BRIDLE_MOUNT: this.mount, BRIDLE_STATE: this.state, XDG_CONFIG_HOME: directory, ...env };
  }

  /** @param script source of a shell script that becomes the `script` harness */
  static async start(options: { script?: string; env?: NodeJS.ProcessEnv } = {}): Promise<TestDaemon> {
    const directory = await mkdtemp(join(tmpdir(), 'bridle-cli-'));
    const config = join(directory, 'config.toml');
    const program = join(directory, 'harness.sh');
    await writeFile(program, `#!/bin/sh\n${options.script ?? 'cat >/dev/null'}\n`, { mode: 0o755 });
    await writeFile(config, `[harness.script]\nprogram = "${program}"\n`);
    const daemon = new TestDaemon(directory, { BRIDLE_CONFIG: config, ...options.env });
    await daemon.start();
    return daemon;
  }

  get log(): string {
    return this.#log;
  }

  get child(): ChildProcess {
    if (this.#child === undefined) throw new Error('the daemon is not running');
    return this.#child;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [MAIN, 'daemon'], {
      env: { ...process.env, ...this.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    this.#child = child;
    await until(`daemon answers:\n${this.#log}`, () => {
      if (child.exitCode !== null) throw new Error(`the daemon ended:\n${this.#log}`);
      return existsSync(join(this.mount, 'version'));
    });
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.child;
    this.#child = undefined;
    if (child.exitCode !== null) return child.exitCode;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = await exited;
    return code as number | null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child !== undefined) await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}
