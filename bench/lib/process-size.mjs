import { readFile } from 'node:fs/promises';

const KIB_PER_MIB = 1024;

/**
 * How large a process is now.
 * @param {number} pid
 * @returns {Promise<{ rss: number, threads: number }>} MiB, number
 */
export async function sizeOf(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]);
  return { rss: field('VmRSS') / KIB_PER_MIB, threads: field('Threads') };
}
