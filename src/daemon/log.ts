import { fstatSync } from 'node:fs';
import { type DestinationStream, destination, type Logger, pino, symbols } from 'pino';
import pretty from 'pino-pretty';

/** Where the log goes and in which form; `bridle daemon` logs to standard error. */
export interface LogOptions {
  /** Open descriptor. Default: 2. */
  readonly fd?: number;
  readonly env: NodeJS.ProcessEnv;
  readonly isTerminal: boolean;
  /** pino level name. Default: $BRIDLE_LOG, else `info`. */
  readonly level?: string;
}

const LEVELS: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']);

/** Fields that hold what a user wrote or a secret, wherever somebody logs them by mistake. */
const PRIVATE = ['prompt', 'system', 'content', 'text', 'input', 'output', 'bytes', 'env'].concat([
  'authorization',
  'apiKey',
  'password',
  'secret',
]);
const REDACTED = PRIVATE.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

/** Shapes of well-known keys inside free text, as a program prints them in an error message. */
const KEY_LIKE =
  /\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abp]|AIza)[-_]?[A-Za-z0-9_-]{16,}|\bBearer [A-Za-z0-9._~+/-]{8,}=*/g;

/**
 * The daemon's logger: JSON lines; with a `<n>` priority in front of each when the journal reads them; readable text on
 * a terminal. Never holds a prompt or a secret: the fields above are removed, and key-like words in messages are masked.
 */
export function createLogger(options: LogOptions): Logger {
  const asked = options.level ?? options.env['BRIDLE_LOG'] ?? 'info';
  return pino(
    {
      level: LEVELS.has(asked) ? asked : 'info',
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      redact: { paths: REDACTED, censor: '[removed]' },
      hooks: { streamWrite: (line) => line.replace(KEY_LIKE, '[removed]') },
    },
    open(options),
  );
}

function open(options: LogOptions): DestinationStream {
  const fd = options.fd ?? 2;
  if (isJournal(fd, options.env)) return withPriority(destination({ dest: fd, sync: true }));
  if (options.isTerminal) return pretty({ destination: fd, sync: true, colorize: !options.env['NO_COLOR'] });
  return destination({ dest: fd, sync: true });
}

/** $JOURNAL_STREAM is inherited by everything a unit starts: it counts only while the descriptor is still that stream. */
function isJournal(fd: number, env: NodeJS.ProcessEnv): boolean {
  const stream = env['JOURNAL_STREAM'];
  if (!stream) return false;
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return stream === `${dev}:${ino}`;
}

/** syslog priority of each pino level, as sd-daemon(3) wants it. */
function priority(level: number): number {
  if (level >= 60) return 2;
  if (level >= 50) return 3;
  if (level >= 40) return 4;
  return level >= 30 ? 6 : 7;
}

function withPriority(target: DestinationStream): DestinationStream {
  // pino sets lastLevel before each write on a stream that asks for metadata.
  const stream = {
    [symbols.needsMetadataGsym]: true as const,
    lastLevel: 30,
    write: (line: string): void => target.write(`<${priority(stream.lastLevel)}>${line}`),
  };
  return stream;
}
