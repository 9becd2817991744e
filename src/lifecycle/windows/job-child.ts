import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { BridleError } from '../../contract/errors.js';
import type { NotEnforced, ProcessExit, ResourceLimits } from '../../contract/harness.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import { type HeldJob, holdInJob } from '../../native/job.js';
import { Deferred, within } from '../deferred.js';
import { type Evidence, evidence } from '../lease-record.js';
import { type Cleanup, EMPTY, type HeldChild, type HoldOrder, type Ready, type StartFailure } from '../platform.js';
import { commandLineOf, environmentBlockOf } from './command-line.js';

export interface JobOptions {
  readonly owner: ProcessIdentity;
  /** Time in which the job must be observed empty, milliseconds. */
  readonly cleanupTimeoutMs: number;
}

/** Time between two looks at a job that is being emptied, milliseconds. */
const POLL_MS = 5;

/** Exit code of what we ended. Windows has no signals; this is reported as one, as on other systems. */
const ENDED = 0xe000_0009;
const SIGKILL = 9;

/** Wishes that nothing on Windows corresponds to. */
const UNSUPPORTED = ['terminal', 'credentials', 'rlimits', 'noNewPrivileges', 'paths'] as const;

/** A child in a Job Object. The kernel ends the job when its handle closes, so no supervisor stands between. */
export class JobChild implements HeldChild {
  readonly ready: Promise<Ready | StartFailure>;
  readonly stdin: Socket;
  readonly stdout: Socket;
  readonly stderr: Socket;
  readonly terminal = null;
  readonly #options: JobOptions;
  readonly #job: HeldJob;
  readonly #started = new Deferred<{ readonly kind: 'started' } | StartFailure>();
  readonly #exited = new Deferred<ProcessExit>();

  /** @throws BridleError PLATFORM_UNSUPPORTED or SPAWN_FAILED; no process is left then */
  constructor({ leaseId, spec, env }: HoldOrder, options: JobOptions) {
    const unsupported = UNSUPPORTED.find((wish) => spec[wish] !== undefined && spec[wish] !== false);
    if (unsupported) throw new BridleError('PLATFORM_UNSUPPORTED', `${unsupported}: Windows cannot do this`);
    this.#options = options;
    const pipe = (stream: string): string => `\\\\.\\pipe\\bridle-${leaseId}-${stream}`;
    const launch = {
      program: spec.argv[0],
      commandLine: commandLineOf(spec.argv),
      directory: spec.cwd,
      environment: environmentBlockOf(env),
      stdin: pipe('stdin'),
      stdout: pipe('stdout'),
      stderr: pipe('stderr'),
    };
    this.#job = this.#hold(launch);
    this.stdin = new Socket({ allowHalfOpen: true }).connect(launch.stdin);
    this.stdout = new Socket({ allowHalfOpen: true }).connect(launch.stdout);
    this.stderr = new Socket({ allowHalfOpen: true }).connect(launch.stderr);
    this.ready = this.#prepare(spec.limits ?? {});
  }

  get started(): HeldChild['started'] {
    return this.#started.promise;
  }

  get exited(): Promise<ProcessExit> {
    return this.#exited.promise;
  }

  release(): void {
    try {
      this.#job.resume();
      this.#started.resolve({ kind: 'started' });
    } catch (error) {
      this.#started.resolve(failureOf(error));
    }
  }

  async empty(): Promise<Cleanup> {
    const cleanup = await this.#terminate();
    this.#job.close();
    this.#started.resolve({ kind: 'failed', step: 'job', reason: 'it was ended' });
    this.#exited.resolve({ code: null, signal: SIGKILL });
    return cleanup;
  }

  #hold(launch: Parameters<typeof holdInJob>[0]): HeldJob {
    try {
      return holdInJob(launch, (code) => this.#exited.resolve(exitOf(code)));
    } catch (cause) {
      throw new BridleError('SPAWN_FAILED', (cause as Error).message, { cause });
    }
  }

  async #prepare(limits: ResourceLimits): Promise<Ready | StartFailure> {
    const connected = Promise.all([this.stdin, this.stdout, this.stderr].map(connection));
    // The fault point `spawned` lies between the creation and the assignment.
    await Promise.resolve();
    try {
      this.#job.assign();
    } catch (error) {
      return failureOf(error);
    }
    // A child that ran before could find that nobody listens to it.
    const failures = await connected;
    const failed = failures.find((failure) => failure !== undefined);
    if (failed) return { kind: 'failed', step: 'pipe', reason: failed.message };
    return {
      kind: 'ready',
      supervisor: this.#options.owner,
      reaper: null,
      child: this.#job.child,
      boundary: { kind: 'job' },
      notEnforced: notEnforced(limits),
    };
  }

  async #terminate(): Promise<Cleanup> {
    const deadline = Date.now() + this.#options.cleanupTimeoutMs;
    try {
      this.#job.terminate(ENDED);
      while (this.#job.active() > 0) {
        if (Date.now() > deadline) return this.#survivors();
        await sleep(POLL_MS);
      }
    } catch (error) {
      return { empty: false, evidence: [evidence('boundary_indeterminate', (error as Error).message)] };
    }
    // The child is gone; its exit code is on the way from another thread.
    await within(this.exited, Math.max(deadline - Date.now(), 0));
    return EMPTY;
  }

  #survivors(): Cleanup {
    const found = (pid: number): Evidence => evidence('boundary_not_empty', `process ${pid} did not end`);
    const [first, ...rest] = this.#job.processes();
    if (first !== undefined) return { empty: false, evidence: [found(first), ...rest.map(found)] };
    return { empty: false, evidence: [evidence('boundary_not_empty', 'the system could not name a survivor')] };
  }
}

function exitOf(code: number): ProcessExit {
  return code === ENDED ? { code: null, signal: SIGKILL } : { code, signal: null };
}

function failureOf(error: unknown): StartFailure {
  const { message, code, step } = error as Error & { code?: string; step?: string };
  return { kind: 'failed', step: step ?? 'job', reason: code ?? message };
}

/** Resolves once a stream is connected, or with why it is not. A pipe that breaks later is a pipe that ended. */
function connection(stream: Socket): Promise<Error | undefined> {
  return new Promise((resolve) => {
    stream.once('connect', () => resolve(undefined));
    stream.once('close', () => resolve(new Error('it was closed')));
    stream.on('error', (error) => {
      resolve(error);
      stream.destroy();
    });
  });
}

function notEnforced(limits: ResourceLimits): NotEnforced[] {
  const wishes = ['memoryBytes', 'processes', 'cpus'] as const;
  return wishes
    .filter((wish) => limits[wish] !== undefined)
    .map((wish) => ({ wish, reason: 'Bridle does not limit resources on Windows.' }));
}
