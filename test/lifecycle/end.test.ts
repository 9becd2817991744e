import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { signalProcess } from '../../src/native/process.js';
import { until } from '../support/until.js';
import { DIST, FakeDaemon } from './fake-daemon.js';
import {
  BOUNDARIES,
  childrenOf,
  isAlive,
  kill,
  leaseCgroups,
  OPERATION,
  SIGKILL,
  STUBBORN,
  untilGone,
  World,
  writtenIdentity,
} from './support.js';

const SIGSTOP = 19;

describe('ending a process', () => {
  it.each(BOUNDARIES)('LC-20 LC-21 ends what ignores TERM and escaped by setsid, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    const process = await lease.launcher.launch(world.script(STUBBORN));
    const child = await writtenIdentity(world.directory, 'child');
    const grandchild = await writtenIdentity(world.directory, 'grandchild');
    const { supervisor } = world.store.only();
    expect(child.pid).toBe(process.pid);
    expect(await lease.close()).toEqual({ empty: true });
    expect([child, grandchild, supervisor].filter(isAlive)).toEqual([]);
    expect(await process.exited).toEqual({ code: null, signal: SIGKILL });
    expect(leaseCgroups().filter((name) => name.endsWith(lease.id))).toEqual([]);
    expect(existsSync(world.path(`witness/${lease.id}`))).toBe(false);
  });

  it.each(BOUNDARIES)('LC-22 asks with TERM before it kills, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup, graceMs: 20_000 });
    const lease = world.lifecycle.lease(OPERATION);
    const process = await lease.launcher.launch(
      world.script('trap "echo bye; exit 5" TERM; echo ready > "$1/ready"; while :; do sleep 0.05; done'),
    );
    const said = text(process.stdout);
    await until(() => existsSync(world.path('ready')), 'the program is ready');
    expect(await lease.close()).toEqual({ empty: true });
    expect(await process.exited).toEqual({ code: 5, signal: null });
    expect(await said).toBe('bye\n');
  });

  it.each(BOUNDARIES)('LC-23 ends what a child left behind that ended by itself, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    const process = await lease.launcher.launch(
      world.script(
        `(setsid sh -c 'trap "" TERM; echo $$ > "$1/left"; while :; do sleep 0.2; done' sh "$1" &) ; exit 0`,
      ),
    );
    expect(await process.exited).toEqual({ code: 0, signal: null });
    const left = await writtenIdentity(world.directory, 'left');
    expect(await lease.close()).toEqual({ empty: true });
    expect(isAlive(left)).toBe(false);
  });

  it('LC-24 removes the record after the boundary was observed empty, once', async () => {
    await using world = new World();
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch(world.script('sleep 60'));
    const { child } = world.store.only();
    let aliveAtRemoval: boolean | undefined;
    const remove = world.store.remove.bind(world.store);
    world.store.remove = (id) => {
      aliveAtRemoval = isAlive(child);
      return remove(id);
    };
    const [first, second] = await Promise.all([lease.close(), lease.close()]);
    expect([first, second, await lease.close()]).toEqual([{ empty: true }, { empty: true }, { empty: true }]);
    expect(aliveAtRemoval).toBe(false);
    expect(world.store.states).toEqual(['owned', 'cleaning', 'removed']);
    expect(world.lifecycle.active).toBe(0);
  });

  it('LC-24 needs nothing for a lease that started nothing', async () => {
    await using world = new World();
    expect(await world.lifecycle.lease(OPERATION).close()).toEqual({ empty: true });
    expect(world.store.states).toEqual([]);
  });

  it.each(BOUNDARIES)(
    'LC-25 LC-48 reports what is left at the deadline, and tries again, $name',
    async ({ cgroup }) => {
      // The deadline ends before the grace, so that KILL never comes.
      await using world = new World({ cgroup, cleanupTimeoutMs: 50, graceMs: 10_000 });
      const lease = world.lifecycle.lease(OPERATION);
      await lease.launcher.launch(world.script(STUBBORN));
      const child = await writtenIdentity(world.directory, 'child');
      const grandchild = await writtenIdentity(world.directory, 'grandchild');
      const cleanup = await lease.close();
      expect(cleanup.empty).toBe(false);
      const record = world.store.only();
      expect(record.state).toBe('cleanup_failed');
      const details = record.evidence.map(({ kind, detail }) => `${kind} ${detail}`);
      expect(details).toContainEqual(expect.stringContaining(`boundary_not_empty pid ${child.pid} (sh)`));
      expect(details).toContainEqual(expect.stringContaining(`boundary_not_empty pid ${grandchild.pid} (sh)`));

      const [again] = await world.lifecycle.recover();
      await untilGone(child);
      if (cgroup) {
        // The kernel may need longer than this deadline to finish with the dead.
        await until(
          async () => world.store.records.size === 0 || !(await world.lifecycle.recover()),
          'the record is gone',
        );
        expect(isAlive(grandchild)).toBe(false);
      } else {
        expect(again?.outcome).toBe('recovery_blocked');
        expect(isAlive(grandchild)).toBe(true);
        signalProcess(grandchild, SIGKILL);
        await untilGone(grandchild);
      }
    },
  );

  it.each(BOUNDARIES)('LC-26 reaps orphans while the run goes on, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    await using lease = world.lifecycle.lease(OPERATION);
    const { pid } = await lease.launcher.launch(
      world.script(
        'for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sleep 0.05 &); done; echo done > "$1/done"; exec sleep 60',
      ),
    );
    await until(() => existsSync(world.path('done')), 'the orphans were made');
    const { reaper } = world.store.only();
    await until(() => childrenOf(reaper?.pid ?? 0).join() === String(pid), 'only the child is left below the reaper');
  });

  it.each(BOUNDARIES)('LC-27 leaves nothing after SIGKILL to the daemon, $name', async ({ cgroup }) => {
    await using daemon = await FakeDaemon.start(STUBBORN, { cgroup });
    const processes = [
      await daemon.identityOf('child'),
      await daemon.identityOf('grandchild'),
      daemon.record.supervisor,
    ];
    await daemon.kill({ supervisor: false });
    for (const identity of processes) await untilGone(identity);
    if (daemon.record.boundary.kind === 'cgroup+subreaper') {
      expect(existsSync(daemon.record.boundary.cgroup.path)).toBe(false);
    }
    expect(existsSync(daemon.recordPath())).toBe(true);
  });

  it.each(BOUNDARIES)('LC-28 one of supervisor and reaper is enough, $name', async ({ cgroup }) => {
    for (const role of ['supervisor', 'reaper'] as const) {
      await using world = new World({ cgroup });
      const lease = world.lifecycle.lease(OPERATION);
      const process = await lease.launcher.launch(world.script(STUBBORN));
      const child = await writtenIdentity(world.directory, 'child');
      const grandchild = await writtenIdentity(world.directory, 'grandchild');
      kill(world.store.only()[role]);
      await untilGone(grandchild);
      expect(await process.exited).toEqual({ code: null, signal: SIGKILL });
      expect(await lease.close()).toEqual({ empty: true });
      expect(isAlive(child)).toBe(false);
      expect(leaseCgroups().filter((name) => name.endsWith(lease.id))).toEqual([]);
      expect(world.store.records.size).toBe(0);
      expect(existsSync(world.path(`witness/${lease.id}`))).toBe(false);
    }
  });

  it.each(BOUNDARIES)(
    'LC-28 finishes the work of supervisor and reaper, or says that it cannot, $name',
    async ({ cgroup }) => {
      await using world = new World({ cgroup });
      const lease = world.lifecycle.lease(OPERATION);
      const process = await lease.launcher.launch(world.script(STUBBORN));
      const child = await writtenIdentity(world.directory, 'child');
      const grandchild = await writtenIdentity(world.directory, 'grandchild');
      const { supervisor, reaper } = world.store.only();
      // The supervisor is stopped first, so that it cannot act on the death of the reaper.
      signalProcess(supervisor, SIGSTOP);
      kill(reaper);
      kill(supervisor);
      expect(await process.exited).toEqual({ code: null, signal: SIGKILL });
      const cleanup = await lease.close();
      expect(isAlive(child)).toBe(false);
      expect(leaseCgroups().filter((name) => name.endsWith(lease.id))).toEqual([]);
      if (cgroup) {
        expect(cleanup).toEqual({ empty: true });
        expect(isAlive(grandchild)).toBe(false);
        expect(world.store.records.size).toBe(0);
      } else {
        expect(cleanup).toMatchObject({ empty: false, evidence: [{ kind: 'boundary_indeterminate' }] });
        expect(world.store.only().state).toBe('cleanup_failed');
        kill(grandchild);
        await untilGone(grandchild);
      }
    },
  );

  it.each(
    BOUNDARIES.flatMap(({ name, cgroup }) =>
      (['supervisor', 'reaper'] as const).map((role) => ({ name, cgroup, role })),
    ),
  )('LC-29 ends a $role that does not answer, $name', async ({ cgroup, role }) => {
    await using world = new World({ cgroup, cleanupTimeoutMs: 500 });
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch(world.script(STUBBORN));
    const record = world.store.only();
    const child = await writtenIdentity(world.directory, 'child');
    const grandchild = await writtenIdentity(world.directory, 'grandchild');
    const stopped = record[role];
    if (stopped) signalProcess(stopped, SIGSTOP);
    expect(await lease.close()).toEqual({ empty: true });
    expect([child, grandchild].filter(isAlive)).toEqual([]);
    // The other one leaves once its report was heard.
    for (const identity of [record.supervisor, record.reaper]) if (identity) await untilGone(identity);
  });

  it('LC-13 LC-33 ends the processes of a JavaScript worker with it, by the end of the channel alone', async () => {
    await using world = new World();
    const worker = new Worker(new URL('./fixtures/worker.mjs', import.meta.url), {
      workerData: { dist: DIST, directory: world.directory, script: STUBBORN },
    });
    await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    const child = await writtenIdentity(world.directory, 'child');
    const grandchild = await writtenIdentity(world.directory, 'grandchild');
    worker.postMessage('end');
    await untilGone(child);
    await untilGone(grandchild);
    // This thread's own use of the addon goes on.
    await using lease = world.lifecycle.lease(OPERATION);
    const process = await lease.launcher.launch(world.script('echo still'));
    expect(await text(process.stdout)).toBe('still\n');
  });
});
