import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * What bench/native/posix-spawn.c measured.
 * @param {string} posixSpawn its path @param {'start' | 'exit'} mode @param {string} program
 */
export function bare(posixSpawn, mode, program) {
  return async (rounds) => {
    const { stdout } = await promisify(execFile)(posixSpawn, [mode, String(rounds), program]);
    return JSON.parse(stdout);
  };
}
