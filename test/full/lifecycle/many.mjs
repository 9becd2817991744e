// Starts and ends /bin/true ten thousand times in one process, and prints what there is of everything after each
// thousand. argv: state directory.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const load = (path) => import(pathToFileURL(`${process.env.BRIDLE_DIST_DIR}/${path}`).href);
const { Journal } = await load('durable/journal.js');
const { JournalLeaseStore } = await load('lifecycle/journal-lease-store.js');
const { Lifecycle } = await load('lifecycle/lifecycle.js');
const { findCgroupPlaces } = await load('lifecycle/linux/cgroup-mounts.js');

const [stateDir] = process.argv.slice(2);
const IN_FLIGHT = 6;
// Small segments, so that what the journal remembers of one does not grow all the time.
const journal = await Journal.open(stateDir, { segmentBytes: 512 * 1024 });
const lifecycle = new Lifecycle({ stateDir, store: new JournalLeaseStore(journal) });
const { root, controllers } = findCgroupPlaces();
const places = new Set([root, ...Object.values(controllers).map(({ directory }) => directory)].filter(Boolean));
/** What another test left is not ours to count. */
const cgroupsBefore = new Set(cgroups());

const looks = [];
for (let thousand = 1; thousand <= 10; thousand += 1) {
  await run(1000);
  looks.push(await look());
}
process.stdout.write(JSON.stringify(looks));
process.exit(0);

async function run(rounds) {
  let left = rounds;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await once(left);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

async function once(number) {
  const lease = lifecycle.lease({ id: `run-${number}`, kind: 'run', harness: 'test' });
  const child = await lease.launcher.launch({
    argv: ['/bin/true'],
    env: {},
    cwd: '/',
    ...(number % 10 === 0 ? { limits: { processes: 10, memoryBytes: 1 << 28 } } : {}),
    ...(number % 10 === 5 ? { terminal: { rows: 24, columns: 80 } } : {}),
  });
  child.stdout.resume();
  child.stderr.resume();
  await child.exited;
  const cleanup = await lease.close();
  if (!cleanup.empty) throw new Error(JSON.stringify(cleanup));
}

async function look() {
  await journal.durable();
  let rss = Number.POSITIVE_INFINITY;
  for (let at = 0; at < 20; at += 1) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
    rss = Math.min(rss, process.memoryUsage().rss);
  }
  const list = (path) => readdirSync(path).length;
  return {
    rss,
    descriptors: descriptors(),
    threads: list('/proc/self/task'),
    children: readdirSync('/proc/self/task').flatMap((task) =>
      readFileSync(`/proc/self/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean),
    ).length,
    leases: list(`${stateDir}/leases`),
    witnesses: list(`${stateDir}/witness`),
    cgroups: cgroups().filter((path) => !cgroupsBefore.has(path)).length,
  };
}

function cgroups() {
  const names = [...places].flatMap((place) => readdirSync(place).map((name) => `${place}/${name}`));
  return names.filter((path) => /\/bridle-[0-9a-f]{8}-[^/]+$/.test(path));
}

/** Those of the journal come and go with its segments; `leases` and `witnesses` below look at its files. */
function descriptors() {
  const targets = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // The descriptor of this very listing.
      return stateDir;
    }
  });
  return targets.filter((target) => !target.startsWith(stateDir)).length;
}
