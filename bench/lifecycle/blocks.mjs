// Measures competitors in turns, so that what else the machine does meets all of them.
const BLOCK = 20;
const WARM_UP = 20;

/**
 * @param {number} rounds
 * @param {Record<string, (rounds: number) => Promise<number[]>>} competitors each does so many rounds, milliseconds
 * @returns {Promise<Record<string, number[]>>}
 */
export async function inTurns(rounds, competitors) {
  const entries = Object.entries(competitors);
  for (const [, measure] of entries) await measure(WARM_UP);
  const samples = Object.fromEntries(entries.map(([name]) => [name, []]));
  for (let done = 0; done < rounds; done += BLOCK) {
    for (const [name, measure] of entries) samples[name].push(...(await measure(Math.min(BLOCK, rounds - done))));
  }
  return samples;
}

/**
 * @param {number} rounds
 * @param {() => Promise<number>} once milliseconds
 */
export async function repeated(rounds, once) {
  const samples = [];
  for (let done = 0; done < rounds; done += 1) samples.push(await once());
  return samples;
}
