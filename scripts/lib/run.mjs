import { spawn } from 'node:child_process';
import { accessSync, constants, createWriteStream, mkdirSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { root, SetupError } from './project.mjs';

const TAIL_BYTES = 1024 * 1024;
const SHOWN_BYTES = 8192;

/**
 * @typedef {object} RunOptions
 * @property {string} [log] file that gets all output, relative to the root or absolute
 * @property {boolean} [show] also pass the output through to our stderr
 * @property {NodeJS.ProcessEnv} [env] default: ours
 * @property {string} [cwd] default: the root
 */

/**
 * Runs a program without a shell and without input.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<{ code: number, output: string }>} output is the last MiB of stdout and stderr together
 */
export async function run(program, args, options = {}) {
  const child = spawn(program, args, {
    cwd: options.cwd ?? root,
    env: options.env ?? process.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = options.log === undefined ? undefined : openLog(options.log);
  let output = '';
  /** @param {Buffer} chunk */
  const take = (chunk) => {
    output = (output + chunk.toString()).slice(-TAIL_BYTES);
    log?.write(chunk);
    if (options.show) process.stderr.write(chunk);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => resolve(status ?? (signal === 'SIGINT' ? 130 : 1)));
  });
  if (log !== undefined) await new Promise((resolve) => log.end(resolve));
  return { code, output };
}

/**
 * Like run(), for a step that must succeed.
 * @param {string} what the step, for the message
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 */
export async function mustRun(what, program, args, options = {}) {
  const { code, output } = await run(program, args, options);
  if (code === 0) return output;
  const where = options.log === undefined ? '' : ` (all output: ${options.log})`;
  throw new SetupError(
    `${what} failed with exit code ${code}${where}\n${options.show ? '' : output.slice(-SHOWN_BYTES)}`,
  );
}

/** Absolute path of a program on PATH, or undefined. @param {string} name */
export function which(name) {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** @param {string} file */
function openLog(file) {
  const path = file.startsWith('/') ? file : join(root, file);
  mkdirSync(dirname(path), { recursive: true });
  return createWriteStream(path);
}
