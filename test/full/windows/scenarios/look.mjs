/** The next daemon: which processes of the dead one live, and what recovery makes of its records. */
import { lives, makeLifecycle, records, report, rest, until } from './support.mjs';

const living = () => JSON.parse(rest[0]).filter(lives);
// The kernel has ended them when their owner was ended; that they are gone can take a moment.
await until(() => living().length === 0);
const lifecycle = makeLifecycle();
const found = records().map(({ state, boundary, reaper }) => ({ state, boundary, reaper }));
const recovered = await lifecycle.recover();
const result = { living: living(), found, outcomes: recovered.map(({ outcome }) => outcome), left: records().length };
if (rest[1] === undefined) {
  report(result);
} else {
  // A process that was not in any job, which lives until it is ended here.
  const bystander = JSON.parse(rest[1]);
  report({ ...result, bystander: lives(bystander) });
  if (lives(bystander)) process.kill(bystander.pid);
}
