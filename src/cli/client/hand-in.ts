import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BridleError, ERRORS, type ErrorBody, type ErrorCode } from '../../contract/errors.js';
import { REQUEST_SUFFIX } from '../../contract/names.js';
import type { Request } from '../../contract/request.js';

/** A new request id that sorts by time. */
export function newRequestId(): string {
  return `${Date.now().toString(36)}-${randomBytes(5).toString('hex')}`;
}

/**
 * Hands a request in as every client does: write a temporary file in the inbox, fsync, rename to `<id>.req.json`.
 * When this resolves the request is accepted.
 * @throws BridleError the refusal, as `outbox/<id>.error.json` tells it
 */
export async function handIn(mount: string, agent: string, id: string, request: Request): Promise<void> {
  const inbox = join(mount, 'agents', agent, 'inbox');
  const temporary = join(inbox, `.${id}.tmp`);
  try {
    await writeDurably(temporary, JSON.stringify(request));
  } catch (cause) {
    throw (cause as NodeJS.ErrnoException).code === 'ENOENT'
      ? new BridleError('AGENT_UNKNOWN', `there is no agent ${agent}`, { cause })
      : await refusal(mount, agent, id, cause);
  }
  try {
    await rename(temporary, join(inbox, `${id}${REQUEST_SUFFIX}`));
  } catch (cause) {
    const refused = await refusal(mount, agent, id, cause);
    await rm(temporary, { force: true });
    throw refused;
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function refusal(mount: string, agent: string, id: string, cause: unknown): Promise<BridleError> {
  const { code: errno, message } = cause as NodeJS.ErrnoException;
  const body = await readErrorFile(join(mount, 'agents', agent, 'outbox', `${id}.error.json`));
  if (body !== undefined) {
    return new BridleError(body.code, body.message, body.path === undefined ? { cause } : { cause, path: body.path });
  }
  const code = BY_ERRNO.get(errno ?? '') ?? 'INTERNAL';
  return new BridleError(code, `the request was refused: ${message}`, { cause });
}

/** What an errno means at a hand-in when no error file tells more. */
const BY_ERRNO: ReadonlyMap<string, ErrorCode> = new Map([
  ['EINVAL', 'REQUEST_INVALID'],
  ['EFBIG', 'REQUEST_TOO_LARGE'],
  ['EEXIST', 'REQUEST_CONFLICT'],
  ['EAGAIN', 'QUEUE_FULL'],
  ['EACCES', 'NOT_OWNER'],
  ['EPERM', 'NOT_OWNER'],
  ['ETIMEDOUT', 'DEADLINE_EXCEEDED'],
  ['ENOTCONN', 'DAEMON_NOT_RUNNING'],
  ['ECONNABORTED', 'DAEMON_NOT_RUNNING'],
  ['ESHUTDOWN', 'SHUTTING_DOWN'],
]);

async function readErrorFile(path: string): Promise<ErrorBody | undefined> {
  try {
    const body = JSON.parse(await readFile(path, 'utf8')) as ErrorBody;
    return body.code in ERRORS ? body : undefined;
  } catch {
    return undefined;
  }
}
