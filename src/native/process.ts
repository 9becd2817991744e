import type { ProcessIdentity } from '../contract/identity.js';
import { nativeExports } from './addon.js';

interface ProcessExports {
  spawnSupervisor(
    executable: string,
    lease: string,
    order: Uint8Array,
    onSpawn: (pid: number | null, failure?: string) => void,
    onExit: (status: number) => void,
  ): SupervisorHandle;
  signalProcess(identity: ProcessIdentity, signal: number, proof: SignalProof | null): SignalResult;
  probeContainment(): ContainmentSupport;
}

const addon = nativeExports<ProcessExports>();

export interface SupervisorHandle {
  /** Our end of the control channel, a stream socket. Closing it tells the supervisor to clean up and leave. */
  readonly control: number;
  /** Bytes of the order that the channel took; the rest is yours to write. */
  readonly sent: number;
  /** Our ends of the child's standard streams. */
  readonly stdin: number;
  readonly stdout: number;
  readonly stderr: number;
  /** A stream socket: one byte lets the child go on, closing it sends the child away. src/lifecycle/linux/gate.ts. */
  readonly gate: number;
}

/**
 * Starts a supervisor as a direct child, in a session of its own. A fork server, which the first call executes and which
 * lives as long as the addon, forks it, so neither page tables of this process are copied nor is a program executed.
 * Returns before it runs; what is written to the control channel meanwhile is not lost.
 * @param order first bytes of the control channel
 * @param lease 32 characters that stand as BRIDLE_LEASE in the supervisor's environment, which is empty else
 * @param onSpawn its pid, or null and the failed step with its errno; then `onExit` never comes
 * @param onExit exit code or 128 + signal; called on the JavaScript thread after the supervisor was reaped
 * @throws Error with `code` and the failed step when there are no descriptors left
 */
export function spawnSupervisor(
  executable: string,
  lease: string,
  order: Uint8Array,
  onSpawn: (pid: number | null, failure?: string) => void,
  onExit: (status: number) => void,
): SupervisorHandle {
  return addon.spawnSupervisor(executable, lease, order, onSpawn, onExit);
}

export type SignalResult = 'sent' | 'gone' | 'mismatch';

/** What proves, beside a start time, that a process belongs to a lease: either one is enough. */
export interface SignalProof {
  /** The process has BRIDLE_LEASE=<lease> in its environment. */
  readonly lease: string;
  /** The process is in this cgroup or below it; empty when there is none. */
  readonly cgroup: string;
}

/**
 * Sends through a pidfd, after the birth token was compared with the recorded one. Never to a bare PID.
 * @param signal 0 only looks
 * @param proof needed for every signal but 0 when the token is a start time: `mismatch` without it
 */
export function signalProcess(identity: ProcessIdentity, signal: number, proof?: SignalProof): SignalResult {
  return addon.signalProcess(identity, signal, proof ?? null);
}

export interface ContainmentSupport {
  readonly pidfd: boolean;
  readonly pidfs: boolean;
  readonly subreaper: boolean;
  /** Version of the Landlock ABI, or null. */
  readonly landlock: number | null;
}

export function probeContainment(): ContainmentSupport {
  return addon.probeContainment();
}
