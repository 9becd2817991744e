import { z } from 'zod';

/** Request ids: also file stems, so no slash, no leading dot, at most 128 bytes. */
export const requestIdSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/);
/** Session names: as request ids, shorter because they are directory names with suffixes. */
export const sessionNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/);
export const agentNameSchema = z.string().regex(/^[a-z][a-z0-9-]{0,63}$/);
export const harnessNameSchema = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/);

/** The agent that every daemon has, and that a request goes to when none is named. */
export const DEFAULT_AGENT = 'default';

export const REQUEST_SUFFIX = '.req.json';
/** A request file holds at most this many bytes (EFBIG above). */
export const MAX_REQUEST_BYTES = 1024 * 1024;
/** A control file holds at most this many bytes (EMSGSIZE above). */
export const MAX_CONTROL_BYTES = 64 * 1024;

/** The request id in a file name `<id>.req.json`, or undefined when the name is not of that form. */
export function requestIdOf(fileName: string): string | undefined {
  if (!fileName.endsWith(REQUEST_SUFFIX)) return undefined;
  const id = fileName.slice(0, -REQUEST_SUFFIX.length);
  return requestIdSchema.safeParse(id).success ? id : undefined;
}
