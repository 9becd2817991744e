import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { BridleError } from '../../src/contract/errors.js';
import type { ContainedProcess, Launcher, LaunchSpec } from '../../src/contract/harness.js';

/** Starts real processes without containment, each in a process group of its own that is killed on disposal. */
export class TestLauncher implements Launcher, AsyncDisposable {
  readonly launched: LaunchSpec[] = [];
  readonly #children: ChildProcess[] = [];

  async launch(spec: LaunchSpec): Promise<ContainedProcess> {
    this.launched.push(spec);
    const [program, ...args] = spec.argv;
    const child = spawn(program, args, { cwd: spec.cwd, env: spec.env, detached: true, stdio: 'pipe' });
    try {
      await once(child, 'spawn');
    } catch (cause) {
      throw new BridleError('SPAWN_FAILED', `exec: ${String(cause)}`, { cause });
    }
    this.#children.push(child);
    const { promise, resolve } = deferred<{ code: number | null; signal: number | null }>();
    child.once('exit', (code, signal) => resolve({ code, signal: signal === null ? null : 9 }));
    const { pid, stdin, stdout, stderr } = child;
    return { pid: pid ?? 0, stdin, stdout, stderr, exited: promise, terminal: null, notEnforced: [] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      const ended = child.exitCode !== null || child.signalCode !== null;
      killGroup(child.pid);
      if (!ended) await once(child, 'exit');
    }
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ESRCH') throw cause;
  }
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
