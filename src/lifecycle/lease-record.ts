import { z } from 'zod';
import type { ProcessIdentity } from '../contract/identity.js';

const identitySchema = z.strictObject({
  pid: z.number().int().positive(),
  token: z.string().min(1).max(256),
  scheme: z.enum(['pidfs', 'starttime', 'creationtime']),
});

/** Only directories that Bridle names itself: a damaged record must not point a kill at something else. */
const cgroupPathSchema = z
  .string()
  .max(4096)
  .regex(/^\/.*\/bridle-[0-9a-f]{8}-[0-9a-f]{32}$/)
  .refine((path) => !path.split('/').includes('..'), 'must not contain ..');

const processGroupSchema = z.number().int().positive();
/** Directories of version 1 hierarchies that limit the boundary; they hold the same processes. */
const limitsSchema = z.array(cgroupPathSchema).max(8);

const boundarySchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('cgroup+subreaper'),
    cgroup: z.strictObject({ path: cgroupPathSchema, inode: z.string().regex(/^[0-9]+$/) }),
    processGroup: processGroupSchema,
    limits: limitsSchema,
  }),
  z.strictObject({ kind: z.literal('subreaper'), processGroup: processGroupSchema, limits: limitsSchema }),
  /** A Windows Job Object without a name: it ends with the handle, and the handle with its process. */
  z.strictObject({ kind: z.literal('job') }),
]);

const evidenceSchema = z.strictObject({
  kind: z.enum(['boundary_not_empty', 'identity_mismatch', 'boundary_indeterminate', 'record_unreadable']),
  detail: z.string().max(4096),
  observedAt: z.string(),
});

/** `bridle.lease/v1`: who owns one boundary, written before its child runs and deleted once it was observed empty. */
export const leaseRecordSchema = z.strictObject({
  schema: z.literal('bridle.lease/v1'),
  id: z.string().regex(/^[0-9a-f]{32}$/),
  revision: z.number().int().positive(),
  operation: z.strictObject({ id: z.string().min(1).max(256), kind: z.enum(['run', 'probe']) }),
  harness: z.string().min(1).max(64),
  owner: identitySchema,
  /** Ends the boundary when its owner dies; the owner itself on Windows, where the kernel does it. */
  supervisor: identitySchema,
  /** Parent of the child, which finishes the supervisor's work; null on Windows. */
  reaper: identitySchema.nullable(),
  child: identitySchema,
  boundary: boundarySchema,
  state: z.enum(['owned', 'cleaning', 'completed', 'cleanup_failed', 'recovery_blocked']),
  createdAt: z.string(),
  updatedAt: z.string(),
  evidence: z.array(evidenceSchema).max(64),
});

export type LeaseRecord = z.infer<typeof leaseRecordSchema>;
export type Boundary = LeaseRecord['boundary'];
export type Evidence = z.infer<typeof evidenceSchema>;

/** What a lease is for. */
export interface Operation {
  readonly id: string;
  readonly kind: 'run' | 'probe';
  readonly harness: string;
}

export interface Identities {
  readonly owner: ProcessIdentity;
  readonly supervisor: ProcessIdentity;
  readonly reaper: ProcessIdentity | null;
  readonly child: ProcessIdentity;
}

export function newRecord(id: string, operation: Operation, identities: Identities, boundary: Boundary): LeaseRecord {
  const now = new Date().toISOString();
  return {
    schema: 'bridle.lease/v1',
    id,
    revision: 1,
    operation: { id: operation.id, kind: operation.kind },
    harness: operation.harness,
    owner: identities.owner,
    supervisor: identities.supervisor,
    reaper: identities.reaper,
    child: identities.child,
    boundary,
    state: 'owned',
    createdAt: now,
    updatedAt: now,
    evidence: [],
  };
}

/** The next revision of a record. Evidence is added to what is there; the oldest goes when there is too much. */
export function nextRecord(
  record: LeaseRecord,
  state: LeaseRecord['state'],
  evidence: readonly Evidence[] = [],
): LeaseRecord {
  return {
    ...record,
    revision: record.revision + 1,
    state,
    updatedAt: new Date().toISOString(),
    evidence: [...record.evidence, ...evidence].slice(-64),
  };
}

export function evidence(kind: Evidence['kind'], detail: string): Evidence {
  return { kind, detail: detail.slice(0, 4096), observedAt: new Date().toISOString() };
}
