import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { BridleError } from '../contract/errors.js';
import type { LaunchSpec } from '../contract/harness.js';

/** argv and environment together, each entry with its NUL. */
const MAX_SPEC_BYTES = 256 * 1024;
const MAX_PATH_BYTES = 4096;
/** The greatest uid and gid; the next number means "none" to the kernel. */
const MAX_ID = 0xffff_fffe;

const path = z
  .string()
  .refine((text) => isAbsolute(text), 'must be an absolute path')
  .refine((text) => !text.includes('\0'), 'must not contain NUL')
  .refine((text) => Buffer.byteLength(text) <= MAX_PATH_BYTES, `must not be longer than ${MAX_PATH_BYTES} bytes`);
const id = z.int().min(0).max(MAX_ID);
const cells = z.int().min(1).max(0xffff);
const amount = z.int().min(0);

/** What a launch may ask for beside its program; arguments and environment are checked by hand, for better messages. */
const wishesSchema = z.object({
  cwd: path,
  terminal: z.strictObject({ rows: cells, columns: cells }).optional(),
  credentials: z.strictObject({ uid: id, gid: id, groups: z.array(id).max(65_536) }).optional(),
  rlimits: z
    .partialRecord(z.enum(['as', 'core', 'cpu', 'data', 'fsize', 'memlock', 'nofile', 'nproc', 'stack']), amount)
    .optional(),
  limits: z
    .strictObject({
      memoryBytes: z.int().min(4096).optional(),
      processes: z.int().min(1).max(4_194_304).optional(),
      cpus: z.number().min(0.01).max(4096).optional(),
    })
    .optional(),
  noNewPrivileges: z.boolean().optional(),
  paths: z.strictObject({ readOnly: z.array(path).max(256), readWrite: z.array(path).max(256) }).optional(),
});

function refuse(reason: string): never {
  throw new BridleError('SPAWN_FAILED', `spec: ${reason}`);
}

/**
 * Checks a launch before any process exists.
 * @returns the environment as `NAME=value` entries
 * @throws BridleError SPAWN_FAILED, step `spec`
 */
export function checkLaunchSpec(spec: LaunchSpec): string[] {
  const [program] = spec.argv;
  if (program === undefined || !isAbsolute(program)) refuse('the program must be an absolute path');
  const env = Object.entries(spec.env).map(([name, value]) => {
    if (name === '' || name.includes('=')) refuse(`${JSON.stringify(name)} cannot name an environment variable`);
    return `${name}=${value}`;
  });
  const texts = [...spec.argv, ...env];
  if (texts.some((text) => text.includes('\0'))) refuse('an argument or the environment contains NUL');
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0);
  if (bytes > MAX_SPEC_BYTES) refuse(`arguments and environment take ${bytes} bytes, the limit is ${MAX_SPEC_BYTES}`);
  const wishes = wishesSchema.safeParse(spec);
  const issue = wishes.error?.issues[0];
  if (issue) refuse(`${issue.path.join('.')}: ${issue.message}`);
  return env;
}
