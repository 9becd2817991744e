/**
 * A daemon that has a job, starts a process outside of it in the ordinary way, which passes on every handle that can be
 * inherited, and dies.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  family,
  familySpec,
  identify,
  livingProcesses,
  makeLifecycle,
  newProcesses,
  OPERATION,
  report,
} from './support.mjs';

const before = livingProcesses();
await makeLifecycle().lease(OPERATION).launcher.launch(familySpec);
await family();
const started = newProcesses(before);
const script = 'setTimeout(() => {}, 300000)';
const bystander = spawn(process.execPath, ['-e', script], { detached: true, stdio: 'ignore' });
await once(bystander, 'spawn');
report({ started, owner: identify(process.pid), bystander: identify(bystander.pid) });
process.kill(process.pid, 'SIGKILL');
