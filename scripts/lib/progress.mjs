const quiet = process.env['BRIDLE_QUIET'] === '1';

/** @param {number} milliseconds */
export const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;

/** One line on stderr. @param {string} text */
export function say(text) {
  if (!quiet) process.stderr.write(`bridle: ${text}\n`);
}

/**
 * Runs one step, with a line before it and a line with its time after it.
 * @template T
 * @param {string} label what is being done
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function timed(label, work) {
  const begin = performance.now();
  say(`${label} …`);
  const result = await work();
  say(`${label}: done in ${seconds(performance.now() - begin)}`);
  return result;
}
