/** Closing a lease, and what the record says before. */
import { family, familySpec, identify, makeLifecycle, nodeSpec, OPERATION, records, report } from './support.mjs';

const lifecycle = makeLifecycle();

/** Closes the lease of a child with a detached grandchild. */
async function closeFamily() {
  const lease = lifecycle.lease(OPERATION);
  const child = await lease.launcher.launch(familySpec);
  const pids = await family();
  const before = pids.map((pid) => identify(pid) !== undefined);
  const [record] = records();
  const childToken = identify(child.pid)?.token;
  const cleanup = await lease.close();
  const after = pids.map((pid) => identify(pid) !== undefined);
  return { pids, pid: child.pid, before, record, childToken, cleanup, after, exit: await child.exited };
}

/** Closes the lease of a child that ended by itself and left a process. */
async function closeAfterExit() {
  const lease = lifecycle.lease(OPERATION);
  const child = await lease.launcher.launch(
    nodeSpec(`const { spawn } = require('node:child_process');
      const left = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 300000)'], { detached: true, stdio: 'ignore' });
      left.once('spawn', () => { process.stdout.write(String(left.pid)); left.unref(); });`),
  );
  child.stdout.setEncoding('utf8');
  let said = '';
  child.stdout.on('data', (part) => {
    said += part;
  });
  const exit = await child.exited;
  const before = identify(Number(said)) !== undefined;
  const cleanup = await lease.close();
  return { exit, before, after: identify(Number(said)) !== undefined, cleanup };
}

const closed = await closeFamily();
report({
  owner: identify(process.pid),
  closed,
  afterExit: await closeAfterExit(),
  active: lifecycle.active,
  records: records(),
});
