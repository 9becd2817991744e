import { z } from 'zod';
import { BridleError } from './errors.js';
import { harnessNameSchema, sessionNameSchema } from './names.js';

const reasoningSchema = z.enum(['off', 'low', 'medium', 'high']);
export const permissionsSchema = z.enum(['safe', 'supervised', 'unrestricted']);

/**
 * `bridle.request/v1`: the content of `<id>.req.json`. Unknown fields are refused, so that a misspelt one is never
 * silently ignored. Every field is honoured by the chosen harness or refused with UNSUPPORTED_FIELD.
 */
export const requestSchema = z.strictObject({
  schema: z.literal('bridle.request/v1').optional(),
  /** What to do. At least one character, at most 1 MiB with the rest of the file. */
  prompt: z.string().min(1),
  /** Conversation to go on with; a new session is made when absent or when it does not exist yet. */
  session: sessionNameSchema.optional(),
  /** Pin: exactly this harness, or the run fails. */
  harness: harnessNameSchema.optional(),
  model: z.string().min(1).max(256).optional(),
  /** Instructions for this run; replaces the agent's system.md. */
  system: z
    .string()
    .max(64 * 1024)
    .optional(),
  /** Working directory of the run: absolute. Default: a directory of the session's own. */
  cwd: z
    .string()
    .startsWith('/')
    .max(4096)
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .optional(),
  permissions: permissionsSchema.optional(),
  reasoning: reasoningSchema.optional(),
  temperature: z.number().min(0).max(2).optional(),
  seed: z.number().int().optional(),
  /** Wall-clock limit of the run in milliseconds, counted from its start. Default 3 600 000. */
  timeoutMs: z
    .number()
    .int()
    .min(1)
    .max(7 * 24 * 3600 * 1000)
    .optional(),
  /** The run ends when the harness is silent for this many milliseconds. Default: no such limit. */
  idleTimeoutMs: z
    .number()
    .int()
    .min(1)
    .max(24 * 3600 * 1000)
    .optional(),
  /** What recovery does with a run that a crash of the daemon cut off. Default "never": it is reported as cancelled. */
  retry: z.enum(['never', 'on-crash']).optional(),
  /** Echoed in the response and in the audit row; at most 32 keys. */
  metadata: z
    .record(z.string().min(1).max(64), z.string().max(1024))
    .refine((value) => Object.keys(value).length <= 32, 'at most 32 keys')
    .optional(),
});

export type Request = z.infer<typeof requestSchema>;

/**
 * Parses the bytes of a request file.
 * @throws BridleError REQUEST_INVALID naming the field, or REQUEST_TOO_LARGE.
 */
export function parseRequest(bytes: Uint8Array): Request {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new BridleError('REQUEST_INVALID', 'the request is not valid UTF-8', { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new BridleError('REQUEST_INVALID', `the request is not JSON: ${(cause as Error).message}`, { cause });
  }
  const result = requestSchema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const keys = issue?.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : (issue?.path ?? []);
  throw new BridleError('REQUEST_INVALID', issue?.message ?? 'the request does not match bridle.request/v1', {
    path: keys.map(String).join('.') || '(root)',
  });
}
