// From the last thing that a program does until its end is known here. The program prints the time itself.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { bare } from './bare.mjs';
import { inTurns, repeated } from './blocks.mjs';

const NS_PER_MS = 1e6;

export async function exit(daemon, { rounds, program, posixSpawn }) {
  return await inTurns(rounds, {
    ours: (count) => repeated(count, () => ours(daemon, program)),
    node: (count) => repeated(count, () => node(program)),
    bare: bare(posixSpawn, 'exit', program),
  });
}

async function ours(daemon, program) {
  const lease = daemon.lease();
  const { stdout, exited } = await lease.launcher.launch({ argv: [program], env: {}, cwd: '/' });
  const output = text(stdout);
  await exited;
  const reported = process.hrtime.bigint();
  await lease.close();
  return sinceLastWords(await output, reported);
}

async function node(program) {
  const child = spawn(program, [], { env: {}, cwd: '/' });
  const output = text(child.stdout);
  await once(child, 'exit');
  const reported = process.hrtime.bigint();
  return sinceLastWords(await output, reported);
}

function sinceLastWords(output, reported) {
  return Number(reported - BigInt(output)) / NS_PER_MS;
}
