// C programs that benchmarks measure with, made by the machine's own compiler.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './directory.mjs';

const run = promisify(execFile);

/**
 * @param {string} name of the source in bench/native, without its ending
 * @param {string} directory where the program goes
 * @param {readonly string[]} libraries as pkg-config calls them
 * @returns {Promise<string>} absolute path of the program
 */
export async function compile(name, directory, libraries = []) {
  const program = join(directory, name);
  const source = join(ROOT, 'bench/native', `${name}.c`);
  const linked = libraries.length === 0 ? [] : await flagsOf(libraries);
  await run('cc', ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-o', program, source, ...linked]);
  return program;
}

async function flagsOf(libraries) {
  const { stdout } = await run('pkg-config', ['--cflags', '--libs', ...libraries]);
  return stdout.split(/\s+/).filter((flag) => flag !== '');
}
