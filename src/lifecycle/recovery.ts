import type { LeaseContext } from './lease.js';
import { type Evidence, evidence, type LeaseRecord, leaseRecordSchema, nextRecord } from './lease-record.js';
import { type Cleanup, EMPTY } from './platform.js';

/** What recovery made of one record. */
export interface RecoveredLease {
  /** Lease id; null when the record cannot be read. */
  readonly id: string | null;
  /** Run or probe that it belonged to; null when the record cannot be read. */
  readonly operation: LeaseRecord['operation'] | null;
  readonly harness: string | null;
  /**
   * `completed`: observed empty, record deleted. `left`: its owner lives, may live, or somebody else settles it.
   * `cleanup_failed` and `recovery_blocked`: the record stays with evidence. `unreadable`: not a record of this version;
   * kept as it is.
   */
  readonly outcome: 'completed' | 'left' | 'cleanup_failed' | 'recovery_blocked' | 'unreadable';
  readonly evidence: readonly Evidence[];
}

export interface RecoveryOptions {
  /**
   * Age at which a record is taken over although nobody can tell whether its owner lives, milliseconds. A record whose
   * owner is known to be dead is taken over at any age.
   */
  readonly staleGraceMs: number;
  /** Whether this daemon holds a lease at this moment. */
  readonly isActive: (leaseId: string) => boolean;
}

function bootOf(identity: LeaseRecord['owner']): string {
  return identity.token.split(':', 1)[0] ?? '';
}

function describe(record: LeaseRecord, outcome: RecoveredLease['outcome'], found: readonly Evidence[]): RecoveredLease {
  const { id, operation, harness } = record;
  return { id, operation, harness, outcome, evidence: found };
}

/** Settles one record that an earlier daemon left. @param stored what the store has under the id of a lease */
export async function recoverRecord(
  stored: unknown,
  context: LeaseContext,
  options: RecoveryOptions,
): Promise<RecoveredLease> {
  const parsed = leaseRecordSchema.safeParse(stored);
  if (!parsed.success) {
    const detail = parsed.error.issues[0]?.message ?? 'not a lease record';
    const found = [evidence('record_unreadable', detail)];
    return { id: null, operation: null, harness: null, outcome: 'unreadable', evidence: found };
  }
  const record = parsed.data;
  if (options.isActive(record.id) || hasOwner(record, context, options)) return describe(record, 'left', []);
  if (record.state === 'recovery_blocked') return describe(record, 'recovery_blocked', record.evidence);

  // Whoever writes the next revision may act; another reaper finds that it is too late.
  const claimed = nextRecord({ ...record, owner: context.platform.owner }, 'cleaning');
  if (!(await context.store.put(claimed))) return describe(record, 'left', []);

  const cleanup = await settle(claimed, context);
  if (cleanup.empty) {
    await context.store.remove(claimed);
    await context.platform.forget(record.id);
    return describe(record, 'completed', []);
  }
  const retriable = cleanup.evidence.every(({ kind }) => kind === 'boundary_not_empty');
  const outcome = retriable ? 'cleanup_failed' : 'recovery_blocked';
  await context.store.put(nextRecord(claimed, outcome, cleanup.evidence));
  return describe(record, outcome, cleanup.evidence);
}

async function settle(record: LeaseRecord, context: LeaseContext): Promise<Cleanup> {
  // Nothing outlives its boot.
  if (bootOf(record.child) !== bootOf(context.platform.owner)) return EMPTY;
  return await context.platform.settle(record);
}

function hasOwner(record: LeaseRecord, { platform }: LeaseContext, { staleGraceMs }: RecoveryOptions): boolean {
  const { owner } = record;
  if (owner.pid === platform.owner.pid && owner.token === platform.owner.token) {
    // Ours, and not active: a clean-up that failed may be tried again, one that goes on may not.
    return record.state === 'cleaning';
  }
  if (bootOf(owner) !== bootOf(platform.owner)) return false;
  switch (platform.look(owner)) {
    case 'alive':
      return true;
    case 'gone':
      return false;
    case 'unknown':
      return Date.now() - Date.parse(record.updatedAt) < staleGraceMs;
  }
}
