import type { Readable, Writable } from 'node:stream';
import type { HarnessEvent } from './events.js';
import type { Request } from './request.js';

export interface HarnessInfo {
  readonly name: string;
  /** `builtin` runs in the daemon, `process` starts a contained program. */
  readonly kind: 'builtin' | 'process';
  /** Program that is started, as found on PATH; null when there is none or it is missing. */
  readonly program: string | null;
  /** May be chosen when neither the request nor the agent names a harness. */
  readonly automatic: boolean;
  /** Optional request fields that this harness honours; any other one that is set is refused. */
  readonly supports: readonly HarnessField[];
  /** How the prompt reaches the program. */
  readonly promptBy: 'memory' | 'stdin' | 'file' | 'argv';
}

export type HarnessField = keyof Pick<
  Request,
  'model' | 'system' | 'cwd' | 'permissions' | 'reasoning' | 'temperature' | 'seed'
>;

export interface HarnessHealth {
  readonly healthy: boolean;
  /** One sentence when unhealthy, else null. */
  readonly reason: string | null;
}

export interface HistoryMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

export interface ExecuteRequest {
  readonly run: string;
  readonly session: string;
  readonly prompt: string;
  /** Earlier messages of the session, oldest first, without this prompt. */
  readonly history: readonly HistoryMessage[];
  readonly system: string | null;
  readonly model: string | null;
  readonly cwd: string;
  /** A directory of the run's own for files the harness needs; exists, private, removed afterwards. */
  readonly scratch: string;
  readonly permissions: 'safe' | 'supervised' | 'unrestricted';
  readonly reasoning: 'off' | 'low' | 'medium' | 'high' | null;
  readonly temperature: number | null;
  readonly seed: number | null;
  /** Starts contained processes; every process of the run goes through it. */
  readonly launcher: Launcher;
  /** Aborted on cancellation and on every timeout. The stream then ends promptly with a `final`. */
  readonly signal: AbortSignal;
}

export interface Harness {
  info(): HarnessInfo;
  /** Cheap: no network, no process. */
  healthCheck(): Promise<HarnessHealth>;
  /**
   * Runs one request. Set-up failures throw a BridleError; everything later is an event. Yields exactly one `final`,
   * last.
   */
  execute(request: ExecuteRequest): AsyncIterable<HarnessEvent>;
}

/** Starts the processes of one run inside its lease. At most one process a run: nothing is pooled or reused. */
export interface Launcher {
  /** @throws BridleError SPAWN_FAILED naming the step; no process is left then. */
  launch(spec: LaunchSpec): Promise<ContainedProcess>;
}

export interface LaunchSpec {
  /** Absolute path of the program, then its arguments. Never a prompt, never a secret. */
  readonly argv: readonly [string, ...string[]];
  /** The whole environment: nothing is inherited that is not named here. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Gives the program a controlling terminal of this size instead of pipes. What it prints is all `stdout` then. */
  readonly terminal?: TerminalSize;
  /** Who the program runs as; without it, as the daemon. */
  readonly credentials?: Credentials;
  /** Limits of each process (setrlimit), soft and hard alike; see getrlimit(2) for the units. */
  readonly rlimits?: Readonly<Partial<Record<RlimitName, number>>>;
  /** Limits of all processes of the run together. Those that this machine cannot enforce are named in `notEnforced`. */
  readonly limits?: ResourceLimits;
  /** No process of the run can gain privileges by executing a program. `paths` implies it. Default false. */
  readonly noNewPrivileges?: boolean;
  /** Files that processes of the run may reach (Landlock): everything else is denied. Refused where it cannot be had. */
  readonly paths?: ReachablePaths;
}

export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
}

export interface Credentials {
  readonly uid: number;
  readonly gid: number;
  /** Supplementary groups: exactly these. */
  readonly groups: readonly number[];
}

export type RlimitName = 'as' | 'core' | 'cpu' | 'data' | 'fsize' | 'memlock' | 'nofile' | 'nproc' | 'stack';

export interface ResourceLimits {
  /** Bytes of memory; more is refused or ends a process of the run. */
  readonly memoryBytes?: number;
  /** Processes and threads; more cannot be made. */
  readonly processes?: number;
  /** Processors' worth of time, as in 0.5. */
  readonly cpus?: number;
}

/** Each file or directory with everything below it, as absolute paths that exist. */
export interface ReachablePaths {
  /** May be read, listed and executed. */
  readonly readOnly: readonly string[];
  readonly readWrite: readonly string[];
}

/** A wish of a launch that this machine cannot meet, though the program runs. */
export interface NotEnforced {
  readonly wish: keyof ResourceLimits | 'paths';
  /** One sentence. */
  readonly reason: string;
}

export interface ContainedProcess {
  readonly pid: number;
  /** Bytes for the program's standard input; end it to give the program EOF. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** How the program itself ended; its descendants may still live until cleanup. Terminal output came before. */
  readonly exited: Promise<ProcessExit>;
  /** Null when the streams are pipes. */
  readonly terminal: Terminal | null;
  readonly notEnforced: readonly NotEnforced[];
}

export interface Terminal {
  /** The program gets SIGWINCH. Nothing happens once the terminal is closed. */
  resize(size: TerminalSize): void;
}

export interface ProcessExit {
  /** Exit status, or null when a signal ended it. */
  readonly code: number | null;
  /** Signal number, or null. */
  readonly signal: number | null;
}
