/** Waits until the services of Wine have started, which come one after the other: they are no processes of ours. */
import { livingProcesses, newProcesses, report, sleep } from './support.mjs';

const QUIET_MS = 3000;
let before = livingProcesses();
for (let quiet = false; !quiet; ) {
  await sleep(QUIET_MS);
  quiet = newProcesses(before).length === 0;
  before = livingProcesses();
}
report({});
