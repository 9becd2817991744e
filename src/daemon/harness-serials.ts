import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { BridleError } from '../contract/errors.js';
import type { Journal } from '../durable/journal.js';

const TARGET = 'harnesses.json';
const serialsSchema = z.record(z.string(), z.number().int().positive());

/** The serial of each harness, given once: the harness directories of the mount keep their inode numbers. */
export async function harnessSerials(
  journal: Journal,
  names: readonly string[],
  nextSerial: () => number,
): Promise<ReadonlyMap<string, number>> {
  const known = await readSerials(journal.path(TARGET));
  const missing = names.filter((name) => known[name] === undefined);
  for (const name of missing) known[name] = nextSerial();
  if (missing.length > 0) journal.put(TARGET, `${JSON.stringify(known)}\n`);
  return new Map(Object.entries(known));
}

async function readSerials(file: string): Promise<Record<string, number>> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  const parsed = serialsSchema.safeParse(JSON.parse(text));
  if (!parsed.success)
    throw new BridleError('STATE_CORRUPT', `${file}: ${parsed.error.issues[0]?.message ?? 'invalid'}`);
  return parsed.data;
}
