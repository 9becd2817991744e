import type { ProcessIdentity } from '../contract/identity.js';
import { signalProcess } from '../native/process.js';
import { awaitGone, type Cleanup, EMPTY, emptyBoundary, undecidable } from './boundary.js';
import type { LeaseContext } from './lease.js';
import { type Evidence, evidence, type LeaseRecord, leaseRecordSchema, nextRecord } from './lease-record.js';
import { readWitness, removeWitness } from './witness.js';

/** What recovery made of one record. */
export interface RecoveredLease {
  /** Lease id; null when the record cannot be read. */
  readonly id: string | null;
  /** Run or probe that it belonged to; null when the record cannot be read. */
  readonly operation: LeaseRecord['operation'] | null;
  readonly harness: string | null;
  /**
   * `completed`: observed empty, record deleted. `left`: its owner lives. `cleanup_failed` and `recovery_blocked`: the
   * record stays with evidence. `unreadable`: not a record of this version; kept as it is.
   */
  readonly outcome: 'completed' | 'left' | 'cleanup_failed' | 'recovery_blocked' | 'unreadable';
  readonly evidence: readonly Evidence[];
}

/** Time for a supervisor to report after its own deadline. */
const SUPERVISOR_SLACK_MS = 1_000;

function bootOf(identity: ProcessIdentity): string {
  return identity.token.split(':', 1)[0] ?? '';
}

function isAlive(identity: ProcessIdentity): boolean {
  return signalProcess(identity, 0) === 'sent';
}

function blocked(detail: string): Cleanup {
  return { empty: false, evidence: [evidence('identity_mismatch', detail)] };
}

/**
 * The supervisor of a dead daemon cleans up by itself: wait for it. One that overruns its own deadline is killed, after
 * its identity was proven.
 */
async function endSupervisor(record: LeaseRecord, context: LeaseContext): Promise<Cleanup> {
  const { supervisor } = record;
  const deadline = Date.now() + context.cleanupTimeoutMs + context.graceMs + SUPERVISOR_SLACK_MS;
  let gone = await awaitGone(supervisor, deadline, { kill: false });
  if (gone === 'alive') gone = await awaitGone(supervisor, Date.now() + SUPERVISOR_SLACK_MS, { kill: true });
  if (gone === 'mismatch') return blocked(`pid ${supervisor.pid} is not the recorded supervisor any more`);
  if (gone === 'gone') return EMPTY;
  const detail = `the supervisor, pid ${supervisor.pid}, does not end`;
  return { empty: false, evidence: [evidence('boundary_not_empty', detail)] };
}

async function recoverBoundary(record: LeaseRecord, context: LeaseContext): Promise<Cleanup> {
  // Nothing outlives its boot.
  if (bootOf(record.child) !== bootOf(context.owner)) return EMPTY;
  const supervisor = await endSupervisor(record, context);
  const witness = record.boundary.kind === 'subreaper' ? await readWitness(context.witnessOf(record.id)) : undefined;
  const observed: Cleanup =
    witness === 'empty' && signalProcess(record.child, 0) === 'gone'
      ? EMPTY
      : await emptyBoundary(record.boundary, record.child, context.cleanupTimeoutMs);
  if (supervisor.empty) return observed;
  if (observed.empty) return supervisor;
  return { empty: false, evidence: [...supervisor.evidence, ...observed.evidence] };
}

function describe(record: LeaseRecord, outcome: RecoveredLease['outcome'], found: readonly Evidence[]): RecoveredLease {
  const { id, operation, harness } = record;
  return { id, operation, harness, outcome, evidence: found };
}

/**
 * Settles one record that an earlier daemon left.
 * @param active leases that this daemon holds now
 */
export async function recoverRecord(
  stored: unknown,
  context: LeaseContext,
  active: ReadonlySet<string>,
): Promise<RecoveredLease> {
  const parsed = leaseRecordSchema.safeParse(stored);
  if (!parsed.success) {
    const detail = parsed.error.issues[0]?.message ?? 'not a lease record';
    const found = [evidence('record_unreadable', detail)];
    return { id: null, operation: null, harness: null, outcome: 'unreadable', evidence: found };
  }
  const record = parsed.data;
  const isOurs = record.owner.pid === context.owner.pid && record.owner.token === context.owner.token;
  if (active.has(record.id) || (!isOurs && isAlive(record.owner))) return describe(record, 'left', []);
  if (record.state === 'recovery_blocked') return describe(record, 'recovery_blocked', record.evidence);

  // One record that cannot be settled must not keep the daemon from starting.
  const cleanup = await recoverBoundary(record, context).catch(undecidable);
  if (cleanup.empty) {
    await context.store.remove(record.id);
    await removeWitness(context.witnessOf(record.id));
    return describe(record, 'completed', []);
  }
  const retriable = cleanup.evidence.every(({ kind }) => kind === 'boundary_not_empty');
  const outcome = retriable ? 'cleanup_failed' : 'recovery_blocked';
  await context.store.put(nextRecord(record, outcome, cleanup.evidence));
  return describe(record, outcome, cleanup.evidence);
}
