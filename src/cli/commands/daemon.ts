import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Console } from '../console.js';
import type { Finish } from '../finish.js';

export function registerDaemon(program: Command, console: Console, finish: Finish): void {
  program
    .command('daemon')
    .summary('serve the mount until SIGTERM or SIGINT')
    .description('Runs the daemon in the foreground: mounts, recovers what an earlier one left, and serves requests.')
    .option('--state <dir>', 'state directory (default: $BRIDLE_STATE, else $XDG_STATE_HOME/bridle)')
    .option('--config <file>', 'configuration (default: $BRIDLE_CONFIG, else $XDG_CONFIG_HOME/bridle/config.toml)')
    .addHelpText(
      'after',
      `
The log goes to standard error; $BRIDLE_LOG sets its level (trace, debug, info, warn, error).

Examples:
  bridle daemon
  bridle daemon --mount ~/agents --state ~/.local/state/bridle
  systemctl --user enable --now bridle`,
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<{ mount?: string; state?: string; config?: string }>();
      // Loaded here: no other command needs the native part.
      const { runDaemon } = await import('../../daemon/run.js');
      finish(
        await runDaemon({
          mount: options.mount === undefined ? undefined : resolve(options.mount),
          state: options.state === undefined ? undefined : resolve(options.state),
          config: options.config === undefined ? undefined : resolve(options.config),
          env: console.env,
        }),
      );
    });
}
