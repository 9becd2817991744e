/** The next daemon: which processes of the dead one live, and what recovery makes of its records. */
import { lives, makeLifecycle, records, report, rest, until } from './support.mjs';

const living = () => JSON.parse(rest[0]).filter(lives);
// The kernel has ended them when their owner was ended; that they are gone can take a moment.
await until(() => living().length === 0);
const lifecycle = makeLifecycle();
const found = records().map(({ state, boundary, reaper }) => ({ state, boundary, reaper }));
const recovered = await lifecycle.recover();
report({ living: living(), found, outcomes: recovered.map(({ outcome }) => outcome), left: records().length });
