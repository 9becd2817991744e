import { isAbsolute } from 'node:path';
import { BridleError } from '../contract/errors.js';
import type { LaunchSpec } from '../contract/harness.js';

/** argv and environment together, each entry with its NUL. */
const MAX_SPEC_BYTES = 256 * 1024;

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
  if (!isAbsolute(spec.cwd)) refuse('the working directory must be an absolute path');
  const env = Object.entries(spec.env).map(([name, value]) => {
    if (name === '' || name.includes('=')) refuse(`${JSON.stringify(name)} cannot name an environment variable`);
    return `${name}=${value}`;
  });
  const texts = [...spec.argv, ...env];
  if ([...texts, spec.cwd].some((text) => text.includes('\0'))) refuse('an argument or the environment contains NUL');
  if (Buffer.byteLength(spec.cwd) > 4096) refuse('the working directory is longer than 4096 bytes');
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0);
  if (bytes > MAX_SPEC_BYTES) refuse(`arguments and environment take ${bytes} bytes, the limit is ${MAX_SPEC_BYTES}`);
  return env;
}
