import { BridleError } from '../../contract/errors.js';

/** What CreateProcess takes, in UTF-16 units, without the NUL at the end. */
const MAX_COMMAND_LINE = 32_766;

/**
 * Quotes one argument so that CommandLineToArgvW, and every C library, gives it back unchanged. A backslash means
 * itself, except in front of a quote: there each is written twice, and the quote gets one more.
 */
function quote(argument: string): string {
  if (argument !== '' && !/[\s"]/.test(argument)) return argument;
  const escaped = argument.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, '$1$1');
  return `"${escaped}"`;
}

function refuse(reason: string): never {
  throw new BridleError('SPAWN_FAILED', `spec: ${reason}`);
}

/**
 * @param argv program and arguments
 * @throws BridleError SPAWN_FAILED, step `spec`
 */
export function commandLineOf(argv: readonly [string, ...string[]]): string {
  const [program, ...args] = argv;
  // Windows runs these through cmd.exe, which has quoting rules of its own: an argument could become a command.
  if (/\.(bat|cmd)[. ]*$/i.test(program)) refuse('a batch file cannot be started: name the program that it runs');
  if (program.includes('"')) refuse('a path on Windows holds no quote');
  // The program's own name is taken up to the next quote, whatever stands before that.
  const line = [`"${program}"`, ...args.map(quote)].join(' ');
  if (line.length > MAX_COMMAND_LINE) refuse(`the arguments take ${line.length} characters of ${MAX_COMMAND_LINE}`);
  return line;
}

/**
 * The environment of a child, and nothing else in it: what is not named here is not there, SystemRoot included.
 * @param entries `NAME=value`
 * @throws BridleError SPAWN_FAILED, step `spec`, when two names differ by case only
 */
export function environmentBlockOf(entries: readonly string[]): string {
  const byName = new Map<string, string>();
  for (const entry of entries) {
    const name = entry.slice(0, entry.indexOf('=')).toUpperCase();
    if (byName.has(name)) refuse(`the environment has ${name} twice: names do not differ by case on Windows`);
    byName.set(name, entry);
  }
  if (byName.size === 0) return '\0\0';
  // Windows looks names up in a sorted block, by code unit and without regard to case.
  const sorted = [...byName].sort(([left], [right]) => (left < right ? -1 : 1));
  return `${sorted.map(([, entry]) => `${entry}\0`).join('')}\0`;
}
