import type { ProcessIdentity } from '../contract/identity.js';
import { nativeExports } from './addon.js';

interface JobExports {
  holdInJob(launch: JobLaunch, onExit: (code: number) => void): HeldJob;
}

const addon = nativeExports<Partial<JobExports>>();

/** What one child on Windows is started with. */
export interface JobLaunch {
  /** Absolute path of an executable file. */
  readonly program: string;
  /** Program and arguments as one text, quoted; at most 32 766 UTF-16 units. */
  readonly commandLine: string;
  readonly directory: string;
  /** `NAME=value` entries in the order of their names, each with a NUL behind it, and one more NUL. */
  readonly environment: string;
  /** Names of pipes (`\\.\pipe\…`) that do not exist yet. Connect to each before the child runs. */
  readonly stdin: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** A child and the Job Object that is its boundary. Errors have `code` (an errno name or `WIN32_<n>`) and `step`. */
export interface HeldJob {
  readonly child: ProcessIdentity;
  /** Puts the child into the job. @throws Error, step `assign`; the child is gone then */
  assign(): void;
  /** Lets the child run, which must be in the job. @throws Error, step `resume` */
  resume(): void;
  /** Ends every process of the job, and the child if it is not in it. They are gone once active() is 0. */
  terminate(exitCode: number): void;
  /** Number of processes that have not ended. */
  active(): number;
  /** Ids of the processes in the job; not more than 64. */
  processes(): number[];
  /** Closes the job's only handle: the kernel ends what is still in it. Nothing but this may be called afterwards. */
  close(): void;
}

/** Whether this is a build for Windows. */
export function hasJobs(): boolean {
  return addon.holdInJob !== undefined;
}

/**
 * Creates a child whose only thread is suspended, and a job that it is not in yet. The handle must be kept: the child
 * ends with it.
 * @param onExit exit code of the child; called on the JavaScript thread, not after close()
 * @throws Error with `code` and step (`job`, `pipe`, `exec`, `chdir`, `suspend`); no process is left then
 */
export function holdInJob(launch: JobLaunch, onExit: (code: number) => void): HeldJob {
  if (!addon.holdInJob) throw new Error('this build has no Job Objects');
  return addon.holdInJob(launch, onExit);
}
