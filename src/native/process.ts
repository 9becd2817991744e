import type { ProcessIdentity } from '../contract/identity.js';
import { nativeExports } from './addon.js';

interface ProcessExports {
  spawnSupervisor(executable: string, onExit: (status: number) => void): SupervisorHandle;
  signalProcess(identity: ProcessIdentity, signal: number): SignalResult;
  probeContainment(): ContainmentSupport;
}

const addon = nativeExports<ProcessExports>();

export interface SupervisorHandle {
  readonly pid: number;
  /** Our end of the control channel, a stream socket. Closing it tells the supervisor to clean up and leave. */
  readonly control: number;
  /** Our ends of the child's standard streams. */
  readonly stdin: number;
  readonly stdout: number;
  readonly stderr: number;
}

/**
 * Starts the supervisor executable as a direct child, in a session of its own, without copying page tables, from a
 * native thread that lives as long as the addon (the parent-death signal belongs to the forking thread).
 * @param onExit exit code or 128 + signal; called on the JavaScript thread after the supervisor was reaped
 * @throws Error with `code` and the failed step
 */
export function spawnSupervisor(executable: string, onExit: (status: number) => void): SupervisorHandle {
  return addon.spawnSupervisor(executable, onExit);
}

export type SignalResult = 'sent' | 'gone' | 'mismatch';

/** Sends through a pidfd, after the birth token was compared with the recorded one. Never to a bare PID. */
export function signalProcess(identity: ProcessIdentity, signal: number): SignalResult {
  return addon.signalProcess(identity, signal);
}

export interface ContainmentSupport {
  readonly pidfd: boolean;
  readonly pidfs: boolean;
  /** Directory below which boundaries may be made (cgroup v2), or null. */
  readonly cgroupRoot: string | null;
  readonly subreaper: boolean;
}

export function probeContainment(): ContainmentSupport {
  return addon.probeContainment();
}
