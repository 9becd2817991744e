import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { BridleError } from '../contract/errors.js';

export interface Paths {
  readonly state: string;
  readonly mount: string;
  /** True when there is no runtime directory, so that `mount` is below the state home: callers print it. */
  readonly mountIsFallback: boolean;
  readonly config: string;
}

/**
 * Where things are when nothing is configured: the XDG base directories, and what systemd passes to a unit
 * ($STATE_DIRECTORY, $RUNTIME_DIRECTORY). $BRIDLE_STATE, $BRIDLE_MOUNT and $BRIDLE_CONFIG come before all.
 */
export function defaultPaths(env: NodeJS.ProcessEnv): Paths {
  const home = env['HOME'] || homedir();
  const stateHome = env['XDG_STATE_HOME'] || join(home, '.local', 'state');
  const configHome = env['XDG_CONFIG_HOME'] || join(home, '.config');
  const runtime = env['RUNTIME_DIRECTORY']
    ? join(firstOf(env['RUNTIME_DIRECTORY']), 'mount')
    : env['XDG_RUNTIME_DIR'] && join(env['XDG_RUNTIME_DIR'], 'bridle');
  const mount = env['BRIDLE_MOUNT'] || runtime;
  return {
    state: env['BRIDLE_STATE'] || firstOf(env['STATE_DIRECTORY'] ?? '') || join(stateHome, 'bridle'),
    mount: mount || join(stateHome, 'bridle-mount'),
    mountIsFallback: !mount,
    config: env['BRIDLE_CONFIG'] || join(configHome, 'bridle', 'config.toml'),
  };
}

/**
 * A mount over its own state would hide it, and one inside of it would be served from what it is a part of.
 * @throws BridleError CONFIG_INVALID when one of the two directories contains the other
 */
export async function checkApart(mount: string, state: string): Promise<void> {
  const [outer, inner] = await Promise.all([realPathOf(mount), realPathOf(state)]);
  if (!contains(outer, inner) && !contains(inner, outer)) return;
  const message = `the mount ${mount} and the state directory ${state} contain one another`;
  throw new BridleError('CONFIG_INVALID', message, { path: '--mount, --state' });
}

function contains(outer: string, inner: string): boolean {
  return !/^\.\.(?:\/|$)/.test(relative(outer, inner));
}

/** With the symbolic links of the part that exists followed. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const parent = dirname(path);
    // ENOTCONN: the dead mount of an earlier daemon, which is no link.
    if (!['ENOENT', 'ENOTCONN'].includes((error as NodeJS.ErrnoException).code ?? '') || parent === path) return path;
    return join(await realPathOf(parent), basename(path));
  }
}

/** systemd separates several directories by colons. */
function firstOf(list: string): string {
  return list.split(':')[0] ?? '';
}
