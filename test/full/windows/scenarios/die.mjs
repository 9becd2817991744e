/** A daemon that dies at a step of a start, or while its child and a detached grandchild run. */
import {
  family,
  familySpec,
  identify,
  livingProcesses,
  makeLifecycle,
  newProcesses,
  OPERATION,
  report,
  rest,
} from './support.mjs';

const [step, manner] = rest;
const before = livingProcesses();

function die() {
  report({ started: newProcesses(before), owner: identify(process.pid) });
  if (manner === 'exit') process.exit(3);
  process.kill(process.pid, 'SIGKILL');
}

const lifecycle = makeLifecycle({ onStep: (reached) => reached === step && die() });
const lease = lifecycle.lease(OPERATION);
await lease.launcher.launch(familySpec);
await family();
die();
