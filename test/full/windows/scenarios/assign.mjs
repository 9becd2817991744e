/** The child ends between its creation and its assignment: a job does not take a process that is gone. */
import {
  failure,
  livingProcesses,
  makeLifecycle,
  newProcesses,
  nodeSpec,
  OPERATION,
  records,
  report,
} from './support.mjs';

const before = livingProcesses();
let victims = [];
const lifecycle = makeLifecycle({
  onStep: (step) => {
    if (step !== 'spawned') return;
    victims = newProcesses(before);
    for (const { pid } of victims) process.kill(pid, 'SIGKILL');
  },
});
const lease = lifecycle.lease(OPERATION);
const error = await failure(lease.launcher.launch(nodeSpec('')));
report({ victims: victims.length, error, left: newProcesses(before), records: records(), active: lifecycle.active });
