// How soon somebody who reads all the time sees a change.
const COUNT = 200;
const PAUSE_US = 5000;
const WATCH_SECONDS = 4;
const NS_PER_MS = 1e6;

/**
 * @param {import('./competitors.mjs').Competitors} competitors
 * @param {import('./server.mjs').Server} server
 * @returns {Promise<number[]>} milliseconds from each change until it, or a later one, was seen
 */
export async function staleness(competitors, server) {
  const watch = competitors.client({ operation: 'stale', directory: server.mountpoint, seconds: WATCH_SECONDS });
  const times = JSON.parse(await server.command(`changes ${COUNT} ${PAUSE_US}`));
  const seen = await watch;
  // What nobody saw was stale at least until the watch ended.
  const end = Number(process.hrtime.bigint());
  let next = 0;
  return times.map((changed, index) => {
    const version = index + 1;
    while (next < seen.length && seen[next][0] < version) next += 1;
    return ((seen[next]?.[1] ?? end) - changed) / NS_PER_MS;
  });
}
