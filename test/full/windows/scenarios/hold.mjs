/** The steps of a start, one by one, at the typed face of the addon. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { holdInJob, identify, NODE_ENV, report, sleep, until, workFolder } from './support.mjs';

const marker = join(workFolder, 'ran');
const block = Object.entries(NODE_ENV).map(([name, value]) => `${name}=${value}\0`);
const script = `require('node:fs').writeFileSync(process.argv[1], ''); setTimeout(() => {}, 300000)`;
const exits = [];
const job = holdInJob(
  {
    program: process.execPath,
    commandLine: `"${process.execPath}" -e "${script}" "${marker}"`,
    directory: workFolder,
    environment: `${block.sort().join('')}\0`,
    stdin: '\\\\.\\pipe\\bridle-hold-stdin',
    stdout: '\\\\.\\pipe\\bridle-hold-stdout',
    stderr: '\\\\.\\pipe\\bridle-hold-stderr',
  },
  (code) => exits.push(code),
);

function attempt(action) {
  try {
    action();
    return 'done';
  } catch ({ code, step }) {
    return { code, step };
  }
}

const { pid } = job.child;
const created = { inJob: job.processes(), active: job.active(), same: identify(pid)?.token === job.child.token };
const resumedTooEarly = attempt(() => job.resume());
job.assign();
const assigned = { inJob: job.processes(), active: job.active() };
await sleep(500);
const ranSuspended = existsSync(marker);
job.resume();
const resumedTwice = attempt(() => job.resume());
await until(() => existsSync(marker));
// Nothing is terminated here: closing the handle is what ends the child.
const lives = identify(pid) !== undefined;
job.close();
await until(() => identify(pid) === undefined);
report({
  pid,
  created,
  resumedTooEarly,
  assigned,
  ranSuspended,
  resumedTwice,
  lives,
  closed: attempt(() => job.active()),
});
