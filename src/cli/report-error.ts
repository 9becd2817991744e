import { CommanderError } from 'commander';
import { BridleError, toBridleError } from '../contract/errors.js';
import type { Console } from './console.js';

/**
 * Tells a failure on standard error: message and advice for people, one line of JSON (ErrorBody) with `--json`.
 * @returns the exit code
 */
export async function reportError(thrown: unknown, console: Console, json: boolean): Promise<number> {
  if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
  const error = thrown instanceof CommanderError ? usageError(thrown) : toBridleError(thrown);
  const body = error.toBody();
  if (json) {
    await console.stderr.write(`${JSON.stringify(body)}\n`);
    return error.exitCode;
  }
  const { paint } = console.stderr;
  const place = body.path === undefined ? '' : ` (field ${body.path})`;
  await console.stderr.write(`${paint('red', 'bridle:')} ${body.message}${place}\n  ${body.advice}\n`);
  return error.exitCode;
}

function usageError(thrown: CommanderError): BridleError {
  const message = thrown.code === 'commander.help' ? 'a command is missing' : thrown.message.replace(/^error: /, '');
  return new BridleError('USAGE_INVALID', message, { cause: thrown });
}
