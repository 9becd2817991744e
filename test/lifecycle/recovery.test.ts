import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import type { LeaseRecord } from '../../src/lifecycle/lease-record.js';
import { identify } from '../../src/native/identity.js';
import { probeContainment, signalProcess } from '../../src/native/process.js';
import { until } from '../support/until.js';
import { FakeDaemon } from './fake-daemon.js';
import { deadIdentity, LEASE, recordOf, Stranger, withOtherToken } from './strangers.js';
import {
  BOUNDARIES,
  CGROUP_ROOT,
  cgroupOf,
  isAlive,
  OPERATION,
  SIGKILL,
  STUBBORN,
  untilGone,
  World,
} from './support.js';

const SIGCONT = 18;

describe('recovery', () => {
  it.each(BOUNDARIES)('LC-40 settles what daemon, supervisor and reaper left, $name', async ({ cgroup }) => {
    await using daemon = await FakeDaemon.start(STUBBORN, { cgroup });
    const child = await daemon.identityOf('child');
    const grandchild = await daemon.identityOf('grandchild');
    await daemon.kill({ supervisor: true, reaper: true });
    expect(isAlive(grandchild)).toBe(true);
    const recovered = await daemon.recover();
    expect(isAlive(child)).toBe(false);
    if (cgroup) {
      expect(recovered).toMatchObject([{ id: daemon.record.id, outcome: 'completed', evidence: [] }]);
      expect(isAlive(grandchild)).toBe(false);
      expect(existsSync(daemon.recordPath())).toBe(false);
      expect(existsSync(cgroupOf(daemon.record)?.path ?? '')).toBe(false);
    } else {
      expect(recovered).toMatchObject([
        { outcome: 'recovery_blocked', evidence: [{ kind: 'boundary_indeterminate' }] },
      ]);
      expect(isAlive(grandchild)).toBe(true);
      const kept = JSON.parse(readFileSync(daemon.recordPath(), 'utf8'));
      expect(kept).toMatchObject({ state: 'recovery_blocked', revision: 3 });
    }
  });

  it.each(BOUNDARIES)('LC-41 waits for a supervisor that still cleans up, $name', async ({ cgroup }) => {
    // The long grace keeps the supervisor busy while recovery begins.
    await using daemon = await FakeDaemon.start(STUBBORN, { cgroup, graceMs: 1500 });
    const processes = [
      await daemon.identityOf('child'),
      await daemon.identityOf('grandchild'),
      daemon.record.supervisor,
    ];
    await daemon.kill({ supervisor: false });
    expect(isAlive(daemon.record.supervisor)).toBe(true);
    expect(await daemon.recover({ graceMs: 1500 })).toMatchObject([{ outcome: 'completed' }]);
    expect(processes.filter(isAlive)).toEqual([]);
    expect(existsSync(daemon.recordPath())).toBe(false);
    expect(existsSync(join(daemon.directory, 'witness', daemon.record.id))).toBe(false);
  });

  it.each(['child', 'supervisor'] as const)('LC-42 never signals a stranger in the place of the %s', async (role) => {
    await using stranger = new Stranger();
    await using world = new World();
    const record = await recordOf({ [role]: withOtherToken(stranger.identity) });
    await world.store.put(record);
    const [recovered] = await world.lifecycle.recover();
    expect(recovered?.outcome).toBe('recovery_blocked');
    expect(recovered?.evidence).toContainEqual(expect.objectContaining({ kind: 'identity_mismatch' }));
    expect(isAlive(stranger.identity)).toBe(true);
    expect(world.store.only()).toMatchObject({ state: 'recovery_blocked', revision: 3 });
    // Nor later.
    expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'recovery_blocked' }]);
    expect(isAlive(stranger.identity)).toBe(true);
  });

  it('LC-43 never kills a cgroup that is not the recorded one', async () => {
    await using stranger = new Stranger();
    await using world = new World();
    // A real cgroup with a stranger in it where one can be made; elsewhere a directory that shows whether it was used.
    const path = join(CGROUP_ROOT ?? world.directory, `bridle-00000000-${LEASE}`);
    mkdirSync(path);
    try {
      if (CGROUP_ROOT === null) writeFileSync(join(path, 'cgroup.kill'), '');
      else writeFileSync(join(path, 'cgroup.procs'), String(stranger.identity.pid));
      await world.store.put(
        await recordOf({
          boundary: { kind: 'cgroup+subreaper', cgroup: { path, inode: '1' }, processGroup: 1, limits: [] },
        }),
      );
      expect(await world.lifecycle.recover()).toMatchObject([
        { outcome: 'recovery_blocked', evidence: [{ kind: 'identity_mismatch' }] },
      ]);
      expect(isAlive(stranger.identity)).toBe(true);
      if (CGROUP_ROOT === null) expect(readFileSync(join(path, 'cgroup.kill'), 'utf8')).toBe('');
    } finally {
      if (CGROUP_ROOT !== null) {
        writeFileSync(join(CGROUP_ROOT, 'cgroup.procs'), String(stranger.identity.pid));
        rmdirSync(path);
      }
    }
  });

  it('LC-44 leaves the record of a living owner alone', async () => {
    await using owner = new Stranger();
    await using child = new Stranger();
    await using world = new World();
    const record = await recordOf({ owner: owner.identity, child: child.identity });
    await world.store.put(record);
    expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'left' }]);
    expect(world.store.only()).toEqual(record);
    expect(isAlive(child.identity)).toBe(true);
  });

  it('LC-44 leaves the leases of this daemon alone', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch(world.script('sleep 60'));
    expect(await world.lifecycle.recover()).toMatchObject([{ id: lease.id, outcome: 'left' }]);
    expect(isAlive(world.store.only().child)).toBe(true);
  });

  it.each<[string, (record: LeaseRecord) => unknown]>([
    ['text', () => 'not JSON at all'],
    ['another version', () => ({ schema: 'bridle.lease/v2' })],
    ['an unknown field', (record) => ({ ...record, also: 1 })],
    [
      'a cgroup that is not ours',
      (record) => ({
        ...record,
        boundary: {
          kind: 'cgroup+subreaper',
          cgroup: { path: '/sys/fs/cgroup/system.slice', inode: '1' },
          processGroup: 1,
          limits: [],
        },
      }),
    ],
  ])('LC-45 keeps and reports %s', async (_name, damage) => {
    await using world = new World();
    const stored = damage(await recordOf());
    world.store.records.set('damaged', stored);
    expect(await world.lifecycle.recover()).toMatchObject([{ id: null, outcome: 'unreadable' }]);
    expect(world.store.records.get('damaged')).toBe(stored);
  });

  it('LC-46 completes a record of an earlier boot without a signal', async () => {
    await using stranger = new Stranger();
    await using world = new World();
    const { pid, scheme } = stranger.identity;
    const earlier: ProcessIdentity = { pid, scheme, token: '00000000-0000-4000-8000-000000000000:1:77' };
    await world.store.put(await recordOf({ owner: earlier, supervisor: earlier, child: earlier }));
    expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'completed' }]);
    expect(world.store.records.size).toBe(0);
    expect(isAlive(stranger.identity)).toBe(true);
  });

  it('LC-47 removes a cgroup that nobody recorded, and only its own', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch(world.script('sleep 60'));
    const cgroup = cgroupOf(world.store.only());
    if (cgroup === undefined) {
      expect(CGROUP_ROOT, 'boundaries have cgroups where they can be made').toBeNull();
      expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'left' }]);
      return;
    }
    const left = cgroup.path.replace(lease.id, LEASE);
    const foreign = join(CGROUP_ROOT ?? '', `bridle-00000000-${LEASE}`);
    mkdirSync(left);
    mkdirSync(foreign);
    try {
      await world.lifecycle.recover();
      expect([left, cgroup.path, foreign].map((path) => existsSync(path))).toEqual([false, true, true]);
    } finally {
      rmdirSync(foreign);
    }
  });
});

describe('identity', () => {
  it('LC-60 signals only the process that the token names', async () => {
    await using stranger = new Stranger();
    const { identity } = stranger;
    expect(identity.token).toMatch(/^[0-9a-f-]{36}:/);
    expect(signalProcess(withOtherToken(identity), SIGKILL)).toBe('mismatch');
    expect(signalProcess({ ...identity, scheme: 'starttime' }, SIGKILL)).toBe('mismatch');
    expect(isAlive(identity)).toBe(true);
    expect(signalProcess(identity, 0)).toBe('sent');
    expect(signalProcess(identity, SIGKILL)).toBe('sent');
    await untilGone(identity);
    expect(signalProcess(identity, SIGKILL)).toBe('gone');
    expect(identify(identity.pid)).toBeUndefined();
  });

  it('LC-60 takes a zombie for gone', async () => {
    // The shell becomes a program that never waits for the child it started.
    const parent = spawn('/bin/sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exit = once(parent, 'exit');
    try {
      const [chunk] = (await once(parent.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
      const identity = identify(Number(chunk.toString()));
      if (!identity) throw new Error('it ended too early');
      await until(() => / Z /.test(readFileSync(`/proc/${identity.pid}/stat`, 'utf8')), 'it is a zombie');
      expect(signalProcess(identity, SIGKILL)).toBe('gone');
      expect(identify(identity.pid)).toBeUndefined();
    } finally {
      parent.kill('SIGKILL');
      await exit;
    }
  });

  it('LC-60 gives different processes different tokens', async () => {
    const identities = await Promise.all(Array.from({ length: 20 }, () => deadIdentity()));
    expect(new Set(identities.map(({ pid, token }) => `${pid} ${token}`)).size).toBe(20);
  });

  it.each(BOUNDARIES)('LC-66 wants a second proof beside a start time, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup, birthToken: 'starttime' });
    expect(world.lifecycle.strength.birthToken).toBe('starttime');
    const lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch(world.script('env -u BRIDLE_LEASE sleep 600 & echo $!; wait'));
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const record = world.store.only();
    const nameless = identify(Number(line.toString()), 'starttime');
    await until(() => !readFileSync(`/proc/${nameless?.pid}/environ`, 'utf8').includes('BRIDLE'), 'it has no mark');
    if (!nameless) throw new Error('it ended too early');
    const path = cgroupOf(record)?.path ?? '';
    for (const identity of [record.owner, record.supervisor, record.reaper ?? record.owner, record.child, nameless]) {
      expect(identity.scheme).toBe('starttime');
      expect(signalProcess(identity, 0)).toBe('sent');
      expect(signalProcess(identity, SIGCONT)).toBe('mismatch');
      expect(signalProcess(identity, SIGCONT, { lease: LEASE, cgroup: path.replace(lease.id, LEASE) })).toBe(
        'mismatch',
      );
    }
    for (const identity of [record.supervisor, record.reaper ?? record.owner, record.child]) {
      expect(signalProcess(identity, SIGCONT, { lease: lease.id, cgroup: '' })).toBe('sent');
    }
    expect(signalProcess(nameless, SIGCONT, { lease: lease.id, cgroup: '' })).toBe('mismatch');
    expect(signalProcess(nameless, SIGCONT, { lease: '', cgroup: path })).toBe(cgroup ? 'sent' : 'mismatch');
    expect(await lease.close()).toEqual({ empty: true });
  });

  it('LC-44 waits for an owner of another PID namespace as long as the stale grace', async () => {
    await using world = new World({ staleGraceMs: 60_000 });
    const record = await recordOf();
    const token = record.owner.token.replace(/:\d+:/, ':1:');
    const elsewhere = { ...record, owner: { ...record.owner, token } };
    await world.store.put(elsewhere);
    expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'left' }]);
    world.store.records.set(record.id, { ...elsewhere, updatedAt: new Date(Date.now() - 61_000).toISOString() });
    // Nobody can say what the child of a subreaper had started, but the record is taken over.
    expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'recovery_blocked' }]);
    expect(world.store.only().owner).toEqual(identify(process.pid));
  });

  it('LC-61 tells how strong boundaries are', async () => {
    await using weak = new World({ cgroup: false });
    expect(weak.lifecycle.strength).toMatchObject({ kind: 'subreaper', weakness: expect.stringContaining('cgroup') });
    await using world = new World();
    const support = probeContainment();
    expect(world.lifecycle.strength).toMatchObject({
      landlock: support.landlock,
      kind: CGROUP_ROOT === null ? 'subreaper' : 'cgroup+subreaper',
      birthToken: support.pidfs ? 'pidfs' : 'starttime',
    });
  });
});
