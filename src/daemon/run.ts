import { existsSync } from 'node:fs';
import { toBridleError } from '../contract/errors.js';
import { notifySystemd } from '../native/system.js';
import { startDaemon } from './daemon.js';
import { createLogger } from './log.js';
import { defaultPaths } from './paths.js';
import { Watchdog } from './watchdog.js';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export interface RunOptions {
  /** Absolute paths; undefined for the default places (paths.ts). */
  readonly mount: string | undefined;
  readonly state: string | undefined;
  readonly config: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Runs a daemon until a signal or its own end, and tells systemd how it goes: READY=1 after the mount answered through
 * the kernel, WATCHDOG=1 only while both halves answer, STOPPING=1 at the end.
 *
 * @returns the exit code
 * @throws BridleError when it cannot start
 */
export async function runDaemon(options: RunOptions): Promise<number> {
  const { env } = options;
  const defaults = defaultPaths(env);
  const log = createLogger({ env, isTerminal: process.stderr.isTTY });
  if (options.mount === undefined && defaults.mountIsFallback) {
    log.warn({ mount: defaults.mount }, 'there is no $XDG_RUNTIME_DIR: mounting below the state home');
  }
  const defaultConfig = existsSync(defaults.config) ? defaults.config : undefined;
  const stopped = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of SIGNALS) process.on(signal, resolve);
  });
  const daemon = await startDaemon({
    mount: options.mount ?? defaults.mount,
    state: options.state ?? defaults.state,
    config: options.config ?? defaultConfig,
    env,
    log,
  });
  notifySystemd(`READY=1\nSTATUS=serving ${daemon.mount}`);
  log.info({ mount: daemon.mount, state: daemon.state, pid: process.pid }, 'ready');
  const watchdog = new Watchdog(env, log, () => daemon.probe());

  const reason = await Promise.race([stopped, daemon.ended]);
  watchdog[Symbol.dispose]();
  notifySystemd('STOPPING=1\nSTATUS=stopping');
  if (reason instanceof Error) {
    log.fatal({ err: reason }, 'cannot go on');
    await daemon.stop().catch((error: unknown) => log.error({ err: error }, 'could not end in order'));
    return toBridleError(reason).exitCode;
  }
  log.info({ reason: reason ?? 'unmounted' }, 'stopping');
  await daemon.stop();
  log.info('stopped');
  return 0;
}
