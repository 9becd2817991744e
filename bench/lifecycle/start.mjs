// From the call until the program executes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { bare } from './bare.mjs';
import { inTurns, repeated } from './blocks.mjs';

export async function start(daemon, { rounds, program, posixSpawn }) {
  return await inTurns(rounds, {
    ours: (count) => repeated(count, () => ours(daemon, program)),
    node: (count) => repeated(count, () => node(program)),
    bare: bare(posixSpawn, 'start', program),
  });
}

async function ours(daemon, program) {
  const before = performance.now();
  const lease = daemon.lease();
  const { exited } = await lease.launcher.launch({ argv: [program], env: {}, cwd: '/' });
  const took = performance.now() - before;
  await exited;
  await lease.close();
  return took;
}

async function node(program) {
  const before = performance.now();
  const child = spawn(program, [], { env: {}, cwd: '/' });
  const closed = once(child, 'close');
  await once(child, 'spawn');
  const took = performance.now() - before;
  await closed;
  return took;
}
