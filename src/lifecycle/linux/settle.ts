import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../../contract/identity.js';
import { type SignalProof, signalProcess } from '../../native/process.js';
import { type Boundary, type Evidence, evidence, type LeaseRecord } from '../lease-record.js';
import { type Cleanup, EMPTY } from '../platform.js';
import { emptyCgroup, removeCgroup } from './cgroup.js';
import { readWitness } from './witness.js';

/** Ending a boundary from outside: its supervisor and its reaper are gone, or their daemon is. */

const SIGKILL = 9;
const POLL_MS = 5;
/** Time for a supervisor to report after its own deadline. */
const SLACK_MS = 1_000;

export interface SettleOptions {
  readonly cleanupTimeoutMs: number;
  readonly graceMs: number;
  readonly witness: string;
}

type Found = 'gone' | 'alive' | 'mismatch';

/**
 * Waits until a process is gone. `kill`: sends SIGKILL while it is provably the recorded one.
 * @param deadline milliseconds since the epoch
 */
async function awaitGone(
  identity: ProcessIdentity,
  proof: SignalProof,
  deadline: number,
  options: { kill: boolean },
): Promise<Found> {
  for (;;) {
    const result = signalProcess(identity, options.kill ? SIGKILL : 0, proof);
    if (result !== 'sent') return result;
    if (Date.now() > deadline) return 'alive';
    await sleep(POLL_MS);
  }
}

/** What proves, beside a start time, that a process belongs to this boundary. */
function proofOf(leaseId: string, boundary: Boundary): SignalProof {
  return { lease: leaseId, cgroup: boundary.kind === 'cgroup+subreaper' ? boundary.cgroup.path : '' };
}

/** Evidence for a boundary that cannot be judged because a system call failed. */
function undecidable(error: unknown): Cleanup {
  return { empty: false, evidence: [evidence('boundary_indeterminate', (error as Error).message)] };
}

function toCleanup(found: readonly Evidence[]): Cleanup {
  const [first, ...rest] = found;
  return first === undefined ? EMPTY : { empty: false, evidence: [first, ...rest] };
}

/**
 * Kills what is provably in the boundary and observes it. Without a cgroup the child can be killed, but nobody can
 * say any more what it had started: that is `boundary_indeterminate`. Never rejects.
 */
export async function emptyOrphaned(
  record: Pick<LeaseRecord, 'id' | 'boundary' | 'child'>,
  timeoutMs: number,
): Promise<Cleanup> {
  try {
    return toCleanup(await killAndObserve(record, Date.now() + timeoutMs));
  } catch (error) {
    return undecidable(error);
  }
}

async function killAndObserve(
  { id, boundary, child }: Pick<LeaseRecord, 'id' | 'boundary' | 'child'>,
  deadline: number,
): Promise<Evidence[]> {
  const found: Evidence[] = [];
  if (boundary.kind === 'cgroup+subreaper') {
    const cleanup = await emptyCgroup(boundary.cgroup, deadline);
    if (!cleanup.empty) found.push(...cleanup.evidence);
  }
  const gone = await awaitGone(child, proofOf(id, boundary), deadline, { kill: true });
  if (gone === 'mismatch') {
    found.push(evidence('identity_mismatch', `pid ${child.pid} is not provably the recorded child`));
  } else if (gone === 'alive') {
    found.push(evidence('boundary_not_empty', `the child, pid ${child.pid}, did not end`));
  }
  if (boundary.kind === 'subreaper') {
    const detail =
      'supervisor and reaper ended without a report; without a cgroup nobody can tell what the child started';
    found.push(evidence('boundary_indeterminate', detail));
  }
  return found;
}

/**
 * Settles the boundary of a dead daemon: waits for the supervisor and the reaper, which clean up by themselves, ends
 * them when they overrun their own deadline, then empties what they could not. Never rejects.
 */
export async function settleBoundary(record: LeaseRecord, options: SettleOptions): Promise<Cleanup> {
  try {
    const found = await endSupervision(record, options);
    const observed = await observe(record, options);
    if (!observed.empty) found.push(...observed.evidence);
    if (found.length === 0) await removeLimits(record.boundary);
    return toCleanup(found);
  } catch (error) {
    return undecidable(error);
  }
}

async function observe(record: LeaseRecord, options: SettleOptions): Promise<Cleanup> {
  const proof = proofOf(record.id, record.boundary);
  if (
    record.boundary.kind === 'subreaper' &&
    (await readWitness(options.witness)) === 'empty' &&
    signalProcess(record.child, 0, proof) === 'gone'
  )
    return EMPTY;
  return await emptyOrphaned(record, options.cleanupTimeoutMs);
}

/** The reaper first: when it has to be killed, the supervisor takes its work over. */
async function endSupervision(record: LeaseRecord, options: SettleOptions): Promise<Evidence[]> {
  const found: Evidence[] = [];
  const roles = [
    ['reaper', record.reaper],
    ['supervisor', record.supervisor],
  ] as const;
  for (const [role, identity] of roles) {
    if (identity === null) continue;
    const proof = proofOf(record.id, record.boundary);
    const deadline = Date.now() + options.cleanupTimeoutMs + options.graceMs + SLACK_MS;
    let gone = await awaitGone(identity, proof, deadline, { kill: false });
    if (gone === 'alive') gone = await awaitGone(identity, proof, Date.now() + SLACK_MS, { kill: true });
    if (gone === 'mismatch') {
      found.push(evidence('identity_mismatch', `pid ${identity.pid} is not provably the recorded ${role}`));
    } else if (gone === 'alive') {
      found.push(evidence('boundary_not_empty', `the ${role}, pid ${identity.pid}, does not end`));
    }
  }
  return found;
}

/** Removes the directories that limited a boundary, once nothing is in it. */
export async function removeLimits(boundary: Boundary): Promise<void> {
  if (boundary.kind === 'job') return;
  await Promise.all(boundary.limits.map(removeCgroup));
}
