/**
 * The one table of errors. A code is stable; its errno is what the mount answers, its exit code what the CLI returns,
 * and its message says what to do next. Exit codes are listed for people in docs/errors.md.
 */
export const ERRORS = {
  REQUEST_INVALID: {
    errno: 'EINVAL',
    exit: 65,
    advice: 'Correct the field named in `path` and hand the request in again.',
  },
  REQUEST_TOO_LARGE: { errno: 'EFBIG', exit: 65, advice: 'A request file holds at most 1 MiB.' },
  REQUEST_NAME_INVALID: {
    errno: 'EINVAL',
    exit: 65,
    advice: 'Name the file <id>.req.json; an id is 1 to 128 of A-Z a-z 0-9 . _ - and starts with a letter or digit.',
  },
  REQUEST_NOT_A_FILE: {
    errno: 'EINVAL',
    exit: 65,
    advice: 'Only a regular file written in the inbox can be handed in.',
  },
  REQUEST_CONFLICT: { errno: 'EEXIST', exit: 73, advice: 'This id was used with other content: choose a new id.' },
  QUEUE_FULL: { errno: 'EAGAIN', exit: 75, advice: 'Too many requests are waiting: try again later.' },
  NOT_OWNER: { errno: 'EACCES', exit: 77, advice: 'Only the owner of this agent may do that.' },
  READ_ONLY: { errno: 'EROFS', exit: 73, advice: 'Nothing can be made or changed here; see README.md in the mount.' },
  AGENT_UNKNOWN: {
    errno: 'ENOENT',
    exit: 66,
    advice: 'Make the agent with mkdir agents/<name>, or name it in the configuration.',
  },
  AGENT_NAME_INVALID: {
    errno: 'EINVAL',
    exit: 65,
    advice: 'An agent name is 1 to 64 of a-z 0-9 - and starts with a letter.',
  },
  AGENT_EXISTS: { errno: 'EEXIST', exit: 73, advice: 'An agent of this name exists already.' },
  HARNESS_UNKNOWN: { errno: 'EINVAL', exit: 65, advice: 'Name one of the harnesses listed under harnesses/.' },
  HARNESS_UNAVAILABLE: {
    errno: 'EHOSTUNREACH',
    exit: 69,
    advice: 'Install the harness program, or choose another harness.',
  },
  HARNESS_FAILED: {
    errno: 'EIO',
    exit: 1,
    advice: 'The message is what the harness program said; the events file of the request has the whole run.',
  },
  ROUTE_UNAVAILABLE: { errno: 'EHOSTUNREACH', exit: 69, advice: 'No harness is healthy: see harnesses/*/info.json.' },
  UNSUPPORTED_FIELD: {
    errno: 'EOPNOTSUPP',
    exit: 65,
    advice: 'Leave the named field out, or choose a harness that supports it.',
  },
  CONTROL_INVALID: { errno: 'EINVAL', exit: 65, advice: 'Write one valid value as UTF-8 text; see spec/mount.md.' },
  CONTROL_TOO_LARGE: { errno: 'EMSGSIZE', exit: 65, advice: 'A control file holds at most 64 KiB.' },
  SPAWN_FAILED: { errno: 'EIO', exit: 71, advice: 'The process could not be started: the message names the step.' },
  PLATFORM_UNSUPPORTED: { errno: 'EOPNOTSUPP', exit: 69, advice: 'Run on Linux: this platform has no containment.' },
  CLEANUP_FAILED: {
    errno: 'EIO',
    exit: 71,
    advice: 'Processes of the run may be left: see the lease record in the state directory.',
  },
  STATE_LOCKED: {
    errno: 'EBUSY',
    exit: 75,
    advice: 'Another daemon owns this state directory: stop it or choose another --state.',
  },
  STATE_UNWRITABLE: {
    errno: 'EIO',
    exit: 74,
    advice: 'Free space or repair the disk of the state directory, then start the daemon again.',
  },
  STATE_CORRUPT: { errno: 'EIO', exit: 74, advice: 'The named file is damaged: keep a copy, then restore it.' },
  MOUNT_FAILED: { errno: 'EIO', exit: 72, advice: 'Run `bridle doctor`.' },
  MOUNT_BUSY: {
    errno: 'EBUSY',
    exit: 75,
    advice: 'Something else is mounted there: unmount it or choose another --mount.',
  },
  DAEMON_NOT_RUNNING: { errno: 'ENOTCONN', exit: 69, advice: 'Start it with `bridle daemon`.' },
  CONFIG_INVALID: { errno: 'EINVAL', exit: 78, advice: 'Correct the key named in the message.' },
  SHUTTING_DOWN: { errno: 'EAGAIN', exit: 75, advice: 'The daemon is stopping: try again when it runs.' },
  DEADLINE_EXCEEDED: { errno: 'ETIMEDOUT', exit: 75, advice: 'Raise the timeout field, or ask for less.' },
  SESSION_UNKNOWN: { errno: 'ENOENT', exit: 66, advice: 'See the sessions there are with `bridle sessions list`.' },
  USAGE_INVALID: { errno: 'EINVAL', exit: 64, advice: 'See `bridle --help`, or `bridle help <command>`.' },
  INTERNAL: { errno: 'EIO', exit: 70, advice: 'This is a defect of bridle: please report it with the log.' },
} as const satisfies Record<string, { errno: string; exit: number; advice: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** What a client reads of an error: in `<id>.error.json`, in a terminal fact, on the CLI with --json. */
export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly advice: string;
  /** Path of the offending field, as in `limits.timeoutMs`; absent when no single field is at fault. */
  readonly path?: string;
}

export class BridleError extends Error {
  override readonly name = 'BridleError';
  readonly code: ErrorCode;
  readonly path: string | undefined;

  constructor(code: ErrorCode, message: string, options: { path?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.path = options.path;
  }

  get errno(): string {
    return ERRORS[this.code].errno;
  }

  get exitCode(): number {
    return ERRORS[this.code].exit;
  }

  toBody(): ErrorBody {
    const body = { code: this.code, message: this.message, advice: ERRORS[this.code].advice };
    return this.path === undefined ? body : { ...body, path: this.path };
  }
}

/** Anything thrown, as a BridleError: unknown throwables become INTERNAL and keep their cause. */
export function toBridleError(thrown: unknown): BridleError {
  if (thrown instanceof BridleError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new BridleError('INTERNAL', message, { cause: thrown });
}
