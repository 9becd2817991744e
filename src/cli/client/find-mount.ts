import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BridleError } from '../../contract/errors.js';
import { defaultPaths } from '../../daemon/paths.js';

/** Where systemd/bridle.service mounts. */
const SYSTEM_MOUNT = '/run/bridle/mount';

/**
 * The mount that this command talks to: `--mount` or $BRIDLE_MOUNT and no other; else the user's own, else the system's.
 * @throws BridleError DAEMON_NOT_RUNNING naming the places where none is served
 */
export async function findMount(given: string | undefined, env: NodeJS.ProcessEnv): Promise<string> {
  const named = given ?? env['BRIDLE_MOUNT'];
  const places = named ? [named] : [defaultPaths(env).mount, SYSTEM_MOUNT];
  for (const place of places) {
    if (await isServed(place)) return place;
  }
  throw new BridleError('DAEMON_NOT_RUNNING', `no daemon serves ${places.join(' or ')}`);
}

/** True when a living daemon answers there. A dead mount answers ENOTCONN, an unmounted directory ENOENT. */
export async function isServed(mount: string): Promise<boolean> {
  try {
    await readFile(join(mount, 'version'), 'utf8');
    return true;
  } catch {
    return false;
  }
}
