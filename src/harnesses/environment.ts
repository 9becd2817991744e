import { dirname } from 'node:path';

/** What every program may see of the daemon's environment, besides LC_*. */
const COMMON_NAMES: readonly string[] = [
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'XDG_CACHE_HOME',
  'XDG_STATE_HOME',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'all_proxy',
  'no_proxy',
];

export interface EnvironmentSource {
  /** PATH for the program. */
  readonly path: string;
  /** The daemon's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Names that this program may see besides the common ones. */
  readonly names: readonly string[];
  /** Directory for temporary files of the run. */
  readonly scratch: string;
}

/**
 * The whole environment of a harness program: an explicit list of names taken from the daemon's environment, and the
 * few values that make output plain. Nothing else is inherited.
 */
export function programEnvironment(source: EnvironmentSource): Record<string, string> {
  const names = new Set([...COMMON_NAMES, ...source.names]);
  const taken = Object.entries(source.env).filter(([name]) => names.has(name) || name.startsWith('LC_'));
  return {
    ...Object.fromEntries(taken),
    PATH: withOwnNode(source.path),
    TERM: 'dumb',
    NO_COLOR: '1',
    TMPDIR: source.scratch,
  };
}

/** Agent programs written for Node start through `env node`: ours is the one that is certainly there. */
function withOwnNode(path: string): string {
  const own = dirname(process.execPath);
  const directories = path.split(':').filter((directory) => directory !== '');
  return directories.includes(own) ? path : [...directories, own].join(':');
}
