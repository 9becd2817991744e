// From the decision to end a run until its boundary was observed empty and its record is gone.
import { once } from 'node:events';
import { repeated } from './blocks.mjs';

const WARM_UP = 2;

export async function empty(daemon, { rounds, program, processes }) {
  const round = () => emptied(daemon, [program, String(processes)]);
  await repeated(WARM_UP, round);
  return { ours: await repeated(rounds, round) };
}

async function emptied(daemon, argv) {
  const lease = daemon.lease();
  const { stdout } = await lease.launcher.launch({ argv, env: {}, cwd: '/' });
  const [answer] = await once(stdout, 'data');
  if (String(answer) !== 'ready\n') throw new Error(`the processes did not start: ${answer}`);
  const before = performance.now();
  const cleanup = await lease.close();
  const took = performance.now() - before;
  if (!cleanup.empty) throw new Error(`not empty: ${JSON.stringify(cleanup.evidence)}`);
  return took;
}
