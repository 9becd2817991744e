import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Change, FuseSession, Inode, MountOptions, MountRequest, Node } from '../../src/native/fuse.js';
import { listFuseMounts, openConnection, serve, unmount } from '../../src/native/fuse.js';
import { until } from '../support/until.js';

const EVERYBODY = 0o777;

/** Who runs the tests; only root may let others into a mount without a change of the machine's configuration. */
export const uid = process.getuid?.() ?? 0;
export const gid = process.getgid?.() ?? 0;

/** Attributes that most nodes of these tests share. */
export const base = (inode: Inode, mode: number) => ({ inode, mode, uid, gid, time: 1_700_000_000_123 });

export const directory = (inode: Inode): Node => ({ ...base(inode, 0o755), kind: 'directory' });

export const bytes = (inode: Inode, text: string): Node => ({
  ...base(inode, 0o444),
  kind: 'bytes',
  bytes: Buffer.from(text),
});

export const control = (inode: Inode, text: string): Node => ({
  ...base(inode, 0o666),
  kind: 'control',
  bytes: Buffer.from(text),
});

export const file = (inode: Inode, path: string): Node => ({ ...base(inode, 0o444), kind: 'file', path });

export const put = (parent: Inode, name: string, node: Node): Change => ({ op: 'put', parent, name, node });

/** A real mount that this process serves; requests are recorded and answered by `decide`. */
export class Mounted implements AsyncDisposable {
  readonly requests: MountRequest[] = [];
  readonly aborted: number[] = [];
  ended = 0;
  /** Errno to answer a request with; undefined leaves it waiting. */
  decide: (request: MountRequest) => number | undefined = () => 0;
  readonly #directory: string;
  readonly #session: FuseSession;

  private constructor(directory: string, options: Partial<MountOptions>) {
    this.#directory = directory;
    const { fd } = openConnection(this.path(), { source: 'bridle-test', allowOther: uid === 0 });
    this.#session = serve({
      mountpoint: this.path(),
      fd,
      root: { ...base(1, 0o755), kind: 'directory' },
      onRequest: (request) => {
        this.requests.push(request);
        const errno = this.decide(request);
        if (errno !== undefined) this.#session.answer(request.token, errno);
      },
      onAbort: (token) => this.aborted.push(token),
      onEnd: () => {
        this.ended += 1;
      },
      ...options,
    });
  }

  static async start(options: Partial<MountOptions> = {}): Promise<Mounted> {
    const directory = await mkdtemp(join(tmpdir(), 'native-fuse-'));
    await mkdir(join(directory, 'mount'));
    return new Mounted(directory, options);
  }

  get session(): FuseSession {
    return this.#session;
  }

  /** Path below the mount. */
  path(...names: string[]): string {
    return join(this.#directory, 'mount', ...names);
  }

  /** Path of something real beside the mount. */
  backing(...names: string[]): string {
    return join(this.#directory, ...names);
  }

  /** Publishes an inbox called `inbox` over the backing directory `in`. */
  publishInbox(inode: Inode = 512, name = 'inbox', path = 'in'): void {
    this.#session.publish([put(1, name, { ...base(inode, EVERYBODY), kind: 'inbox', path: this.backing(path) })]);
  }

  /** Waits until a request of this kind came. */
  async request<Op extends MountRequest['op']>(op: Op): Promise<Extract<MountRequest, { op: Op }>> {
    const isWanted = (request: MountRequest): request is Extract<MountRequest, { op: Op }> => request.op === op;
    await until(() => this.requests.some(isWanted), `a ${op} request arrives`);
    const found = this.requests.find(isWanted);
    if (found === undefined) throw new Error(`no ${op}`);
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.stop();
    if (listFuseMounts().some((mount) => mount.mountpoint === this.path())) unmount(this.path(), { lazy: true });
    await rm(this.#directory, { recursive: true });
  }
}

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly outcome: Promise<Outcome>;
}

/** A client process. */
export function start(program: string, args: readonly string[]): Running {
  const child = spawn(program, args, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text.stdout += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    text.stderr += part;
  });
  const outcome = new Promise<Outcome>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, ...text }));
  });
  return { pid: child.pid ?? 0, kill: (signal) => child.kill(signal), outcome };
}

/** Runs a shell command as a client of the mount, its positional parameters being `args`. */
export function sh(script: string, ...args: string[]): Promise<Outcome> {
  return start('/bin/sh', ['-ec', script, 'sh', ...args]).outcome;
}

/**
 * Runs JavaScript in a client process with `fs`, `args`, `print(value)` and `attempt(action)` (errno name of a failed
 * action, or 'ok') in scope. @returns what it printed
 */
export async function client<T>(body: string, ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await startClient(body, ...args).outcome;
  if (code !== 0) throw new Error(`the client failed: ${stderr}`);
  return JSON.parse(stdout) as T;
}

export function startClient(body: string, ...args: string[]): Running {
  const prelude = `
    const fs = require('node:fs');
    const args = process.argv.slice(1);
    const print = (value) => fs.writeSync(1, JSON.stringify(value));
    const attempt = (action) => { try { action(); return 'ok'; } catch (error) { return error.code ?? String(error); } };
  `;
  return start(process.execPath, ['-e', `${prelude}${body}`, ...args]);
}
