/** Recovery of records whose processes live: it looks and never signals. */
import { spawn } from 'node:child_process';
import { identify, makeLifecycle, OPERATION, putRecord, records, removeRecord, report } from './support.mjs';

const stranger = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 300000)'], { stdio: 'ignore' });
await new Promise((resolve) => stranger.once('spawn', resolve));
const living = identify(stranger.pid);
/** A process whose number was passed to the stranger, in this boot and in an earlier one. */
const reused = { ...living, token: `utc:${BigInt(living.token.slice('utc:'.length)) - 1n}` };
const longAgo = { ...living, token: 'utc:1' };
/** A process whose number nobody has. */
const gone = { ...living, pid: 0x7fff_fffc };
const now = new Date().toISOString();

/** Leaves a record, recovers, and looks at what became of record and process. */
async function recoverWith({ owner, child }) {
  const id = Math.random().toString(16).slice(2).padEnd(32, '0').slice(0, 32);
  await putRecord({
    schema: 'bridle.lease/v1',
    id,
    revision: 1,
    operation: { id: OPERATION.id, kind: OPERATION.kind },
    harness: OPERATION.harness,
    owner,
    supervisor: owner,
    reaper: null,
    child,
    boundary: { kind: 'job' },
    state: 'owned',
    createdAt: now,
    updatedAt: now,
    evidence: [],
  });
  const lifecycle = makeLifecycle({ cleanupTimeoutMs: 300 });
  const [result] = await lifecycle.recover();
  const [record] = records();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const alive = identify(stranger.pid)?.token === living.token;
  if (record) await removeRecord(record);
  return {
    outcome: result.outcome,
    evidence: result.evidence.map(({ kind }) => kind),
    state: record?.state ?? null,
    alive,
  };
}

const results = {
  bothGone: await recoverWith({ owner: gone, child: gone }),
  ownerReused: await recoverWith({ owner: reused, child: gone }),
  childReused: await recoverWith({ owner: gone, child: reused }),
  earlierBoot: await recoverWith({ owner: longAgo, child: longAgo }),
  /** The owner is gone and the child is not, which no job of ours allows. */
  childLives: await recoverWith({ owner: gone, child: living }),
  ownerLives: await recoverWith({ owner: living, child: living }),
};
stranger.kill();
await new Promise((resolve) => stranger.once('exit', resolve));
report({ ...results, pid: living.pid, token: living.token, afterEnd: identify(living.pid) ?? null });
