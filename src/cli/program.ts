import { Command } from 'commander';
import { version } from '../daemon/version.js';
import { registerCompletion } from './commands/completion.js';
import { registerDaemon } from './commands/daemon.js';
import { registerDemo } from './commands/demo.js';
import { registerDoctor } from './commands/doctor.js';
import { registerMan } from './commands/man.js';
import { registerRun } from './commands/run.js';
import { registerSessions } from './commands/sessions.js';
import { registerStatus } from './commands/status.js';
import type { Console } from './console.js';
import type { Finish } from './finish.js';
import { reportError } from './report-error.js';

/**
 * Runs one command line.
 * @param words the arguments after the program's name
 * @returns the exit code; nothing is thrown
 */
export async function runCli(words: readonly string[], console: Console): Promise<number> {
  let exitCode = 0;
  const program = createProgram(console, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (thrown) {
    return await reportError(thrown, console, wantsJson(words));
  }
}

/** The whole command line interface: help, manual page and completions are made from it. */
function createProgram(console: Console, finish: Finish): Command {
  const program = new Command('bridle')
    .description('Every coding agent on this machine behind one mounted filesystem.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help of a command')
    .option('--mount <dir>', 'the mount (default: $BRIDLE_MOUNT, else $XDG_RUNTIME_DIR/bridle)')
    .configureHelp({ showGlobalOptions: true })
    // Errors are told by reportError, in one form for all.
    .configureOutput({ outputError: () => undefined })
    .exitOverride()
    .addHelpText(
      'after',
      `
Examples:
  bridle demo                          see all of it once, in a temporary place
  bridle daemon                        serve the mount
  bridle run --harness codex "hello"   run one prompt
  bridle sessions list                 what was talked about
  bridle doctor                        what is missing on this machine`,
    );
  registerDaemon(program, console, finish);
  registerRun(program, console, finish);
  registerStatus(program, console);
  registerSessions(program, console);
  registerDoctor(program, console, finish);
  registerDemo(program, console, finish);
  registerCompletion(program, console);
  registerMan(program, console);
  return program;
}

/** Looked up in the words themselves, because a command line that does not parse has no options yet. */
function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return (end === -1 ? words : words.slice(0, end)).includes('--json');
}
