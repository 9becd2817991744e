import { homedir } from 'node:os';
import { join } from 'node:path';

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

/** systemd separates several directories by colons. */
function firstOf(list: string): string {
  return list.split(':')[0] ?? '';
}
