import { readFile } from 'node:fs/promises';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { BridleError } from '../contract/errors.js';
import { agentNameSchema, harnessNameSchema } from '../contract/names.js';

const environmentName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/);
const environmentNames = z.array(environmentName).max(64).default([]);
const program = z.string().startsWith('/').max(4096);

const cliSchema = z.strictObject({
  /** Absolute path; found on PATH when absent. */
  program: program.optional(),
  /** Names of further variables of the daemon's environment that the program may see. */
  env: environmentNames,
});

/** The configuration file, TOML. Every key is optional; unknown keys are refused. */
const configSchema = z.strictObject({
  limits: z
    .strictObject({
      /** Runs at once. */
      runs: z.number().int().min(1).max(256).default(16),
      /** Requests of one agent that wait or run at once; one more is EAGAIN. */
      requests: z.number().int().min(1).max(100_000).default(1024),
    })
    .prefault({}),
  mount: z
    .strictObject({
      /** Let other users see the mount. Default: only when the daemon is root. */
      allow_other: z.boolean().optional(),
    })
    .prefault({}),
  agents: z
    .record(
      agentNameSchema,
      z.strictObject({
        harness: harnessNameSchema.optional(),
        model: z.string().min(1).max(256).optional(),
        system: z
          .string()
          .max(64 * 1024)
          .optional(),
      }),
    )
    .default({}),
  harness: z
    .strictObject({
      codex: cliSchema.optional(),
      pi: cliSchema.optional(),
      script: z
        .strictObject({ program, args: z.array(z.string().max(4096)).max(64).default([]), env: environmentNames })
        .optional(),
    })
    .prefault({}),
});

export type Config = z.infer<typeof configSchema>;

export const EMPTY_CONFIG: Config = configSchema.parse({});

/**
 * Reads a configuration file.
 * @throws BridleError CONFIG_INVALID naming file and key
 */
export async function loadConfig(file: string): Promise<Config> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new BridleError('CONFIG_INVALID', `${file}: ${(cause as Error).message}`, { cause });
  }
  let table: unknown;
  try {
    table = parse(text);
  } catch (cause) {
    throw new BridleError('CONFIG_INVALID', `${file}: ${(cause as Error).message}`, { cause });
  }
  const result = configSchema.safeParse(table);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path.map(String).join('.') ?? '';
  throw new BridleError('CONFIG_INVALID', `${file}: ${path}: ${issue?.message ?? 'invalid'}`, { path });
}
