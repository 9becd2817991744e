import { z } from 'zod';
import { agentNameSchema, requestIdSchema } from '../contract/names.js';
import { requestSchema } from '../contract/request.js';

/**
 * Rows of the queue log. `accepted`, `started` and `finished` are written as they happen; compaction writes a
 * `receipt` for what is finished, so that a replay is still known, and ends with `compacted`.
 */
const place = { agent: agentNameSchema, id: requestIdSchema };
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const serial = z.number().int().nonnegative();
const count = z.number().int().nonnegative();

const acceptedSchema = z.object({
  type: z.literal('accepted'),
  ...place,
  serial,
  digest,
  uid: count,
  gid: count,
  pid: count,
  ts: z.string(),
  request: requestSchema,
});

const startedSchema = z.object({ type: z.literal('started'), ...place, session: z.string(), run: z.string() });

const resultSchema = z.object({ outcome: z.string(), cause: z.string(), stage: z.string() });

const finishedSchema = z.object({ type: z.literal('finished'), ...place, result: resultSchema });

const receiptSchema = z.object({
  type: z.literal('receipt'),
  ...place,
  serial,
  digest,
  session: z.string(),
  run: z.string(),
  result: resultSchema,
});

const compactedSchema = z.object({ type: z.literal('compacted') });

export const queueRowSchema = z.discriminatedUnion('type', [
  acceptedSchema,
  startedSchema,
  finishedSchema,
  receiptSchema,
  compactedSchema,
]);

export type QueueRow = z.infer<typeof queueRowSchema>;
export type AcceptedRow = z.infer<typeof acceptedSchema>;
