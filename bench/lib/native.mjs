// C programs that benchmarks measure with, made by the machine's own compiler.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './directory.mjs';

/**
 * @param {string} name of the source in bench/native, without its ending
 * @param {string} directory where the program goes
 * @returns {Promise<string>} absolute path of the program
 */
export async function compile(name, directory) {
  const program = join(directory, name);
  const source = join(ROOT, 'bench/native', `${name}.c`);
  await promisify(execFile)('cc', ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-o', program, source]);
  return program;
}
