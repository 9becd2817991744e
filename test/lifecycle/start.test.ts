import { existsSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { LeaseRecord } from '../../src/lifecycle/lease-record.js';
import { identify } from '../../src/native/identity.js';
import { until } from '../support/until.js';
import {
  BOUNDARIES,
  CGROUP_ROOT,
  cgroupOf,
  childrenOf,
  failureOf,
  isAlive,
  leaseCgroups,
  MemoryStore,
  OPERATION,
  World,
} from './support.js';

/** A store whose put waits until it is let through, or fails. */
class GatedStore extends MemoryStore {
  readonly asked: LeaseRecord[] = [];
  #open: (failure?: Error) => void = () => undefined;
  readonly #decision = new Promise<Error | undefined>((resolve) => {
    this.#open = resolve;
  });

  decide(failure?: Error): void {
    this.#open(failure);
  }

  override async put(record: LeaseRecord): Promise<boolean> {
    this.asked.push(record);
    const failure = await this.#decision;
    if (failure) throw failure;
    return await super.put(record);
  }
}

describe('starting a process', () => {
  it.each(BOUNDARIES)('LC-04 gives exactly what was named, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      argv: [
        '/bin/sh',
        '-c',
        'pwd; echo "$0:$1"; /usr/bin/env; ls /proc/self/fd; grep -E "^Sig(Blk|Ign)" /proc/self/status; cut -d" " -f5,6 /proc/$$/stat',
        'zero',
        'an argument with "quotes"\n',
      ],
      env: { ONLY: 'this' },
      cwd: '/usr',
    });
    child.stdin.end();
    const output = await text(child.stdout);
    expect(output).toContain('/usr\nzero:an argument with "quotes"\n\n');
    // sh adds PWD; ls adds the descriptor of the directory that it reads.
    expect(output).toMatch(/\nPWD=\/usr\nONLY=this\n|\nONLY=this\nPWD=\/usr\n/);
    expect(output).toContain('\n0\n1\n2\n3\nSig');
    expect(output).toContain('SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
    expect(output).toContain(`\n${child.pid} ${child.pid}\n`);
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  it('LC-05 carries every byte both ways and reports how the child ended', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch(world.script('cat; echo problem >&2; exit 7'));
    const sent = Buffer.alloc(8 * 1024 * 1024, 'all of it\n');
    child.stdin.end(sent);
    // Nobody reads yet: the pipes fill, and the child has to wait.
    await sleep(50);
    const [received, complaint] = await Promise.all([buffer(child.stdout), text(child.stderr)]);
    expect(received.equals(sent)).toBe(true);
    expect(complaint).toBe('problem\n');
    expect(await child.exited).toEqual({ code: 7, signal: null });

    await using killed = world.lifecycle.lease(OPERATION);
    const victim = await killed.launcher.launch(world.script('kill -11 $$'));
    expect(await victim.exited).toEqual({ code: null, signal: 11 });
  });

  it('LC-05 survives a program that does not read its input', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch(world.script('exec <&-; echo closed; exit 3'));
    expect(await text(child.stdout)).toBe('closed\n');
    child.stdin.end(Buffer.alloc(1024 * 1024));
    expect(await child.exited).toEqual({ code: 3, signal: null });
  });

  it('LC-01 gives each lease its own supervisor and boundary, once', async () => {
    await using world = new World();
    const leases = Array.from({ length: 4 }, () => world.lifecycle.lease(OPERATION));
    await Promise.all(leases.map((lease) => lease.launcher.launch(world.script('sleep 60'))));
    const records = [...world.store.records.values()] as LeaseRecord[];
    expect(new Set(records.map((record) => record.supervisor.pid)).size).toBe(4);
    expect(new Set(records.map((record) => record.child.pid)).size).toBe(4);
    if (CGROUP_ROOT !== null) expect(new Set(records.map((record) => JSON.stringify(record.boundary))).size).toBe(4);
    const again = await failureOf(leases[0]?.launcher.launch(world.script('true')) ?? Promise.resolve());
    expect(again.code).toBe('INTERNAL');
    expect(world.store.records.size).toBe(4);
  });

  it('LC-02 refuses a platform without containment before any child', async () => {
    expect(() => new World({ platform: 'darwin' })).toThrowError(
      expect.objectContaining({ code: 'PLATFORM_UNSUPPORTED' }),
    );
  });

  it.each([
    ['a relative program', { argv: ['sh'] as [string], env: {}, cwd: '/' }],
    ['a relative directory', { argv: ['/bin/true'] as [string], env: {}, cwd: 'here' }],
    ['an environment name with =', { argv: ['/bin/true'] as [string], env: { 'A=B': 'c' }, cwd: '/' }],
    ['an empty environment name', { argv: ['/bin/true'] as [string], env: { '': 'c' }, cwd: '/' }],
    ['NUL in an argument', { argv: ['/bin/true', 'a\0b'] as [string, string], env: {}, cwd: '/' }],
    ['NUL in the environment', { argv: ['/bin/true'] as [string], env: { A: '\0' }, cwd: '/' }],
    ['too many bytes', { argv: ['/bin/true', 'x'.repeat(256 * 1024)] as [string, string], env: {}, cwd: '/' }],
  ])('LC-03 refuses %s', async (_name, spec) => {
    // A supervisor that cannot be started shows that none was.
    await using world = new World({ supervisorExecutable: '/nonexistent' });
    const error = await failureOf(world.lifecycle.lease(OPERATION).launcher.launch(spec));
    expect(error).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(/^spec: /) });
  });

  it('LC-03 takes arguments right up to the limit', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const script = 'echo $#';
    const used = Buffer.byteLength(['/bin/sh', '-c', script, 'sh'].join('\0')) + 1;
    // Linux limits a single argument to 128 KiB.
    const rest = 256 * 1024 - used;
    const filler = ['x'.repeat(100_000 - 1), 'x'.repeat(100_000 - 1), 'x'.repeat(rest - 200_000 - 1)];
    const child = await lease.launcher.launch({ argv: ['/bin/sh', '-c', script, 'sh', ...filler], env: {}, cwd: '/' });
    expect(await text(child.stdout)).toBe('3\n');
  });

  it('LC-06 executes only after the record is durable', async () => {
    const store = new GatedStore();
    await using world = new World({}, store);
    await using lease = world.lifecycle.lease(OPERATION);
    const launched = lease.launcher.launch(world.script('echo ran > "$1/marker"; sleep 60'));
    await until(() => store.asked.length > 0, 'the record is asked for');
    const { child } = store.asked[0] as LeaseRecord;
    await sleep(200);
    expect(isAlive(child)).toBe(true);
    expect(readlinkSync(`/proc/${child.pid}/exe`)).toMatch(/bridle-supervisor$/);
    expect(existsSync(world.path('marker'))).toBe(false);
    store.decide();
    await launched;
    await until(() => existsSync(world.path('marker')), 'the program ran');
  });

  it('LC-07 leaves nothing when the record cannot be written', async () => {
    const store = new GatedStore();
    store.decide(new Error('no space'));
    await using world = new World({}, store);
    const error = await failureOf(
      world.lifecycle.lease(OPERATION).launcher.launch(world.script('echo ran > "$1/marker"')),
    );
    expect(error).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(/^record: no space/) });
    const { child, supervisor, id } = store.asked[0] as LeaseRecord;
    expect(isAlive(child) || isAlive(supervisor)).toBe(false);
    expect(existsSync(world.path('marker'))).toBe(false);
    expect(store.records.size).toBe(0);
    expect(leaseCgroups().filter((name) => name.endsWith(id))).toEqual([]);
  });

  it.each([
    ['a program that does not exist', '/nonexistent/program', '/', 'exec: ENOENT'],
    ['a program that may not be executed', 'plain', '/', 'exec: EACCES'],
    ['a program in no known format', 'garbage', '/', 'exec: ENOEXEC'],
    ['a script whose interpreter is missing', 'script', '/', 'exec: ENOENT'],
    ['a working directory that does not exist', '/bin/true', '/nonexistent', 'chdir: ENOENT'],
    ['a working directory that is a file', '/bin/true', '/etc/passwd', 'chdir: ENOTDIR'],
  ])('LC-08 names the step and the reason for %s', async (_name, program, cwd, message) => {
    await using world = new World();
    writeFileSync(world.path('plain'), '#!/bin/sh\n', { mode: 0o644 });
    writeFileSync(world.path('garbage'), 'neither a program nor a script\n', { mode: 0o755 });
    writeFileSync(world.path('script'), '#!/nonexistent/interpreter\n', { mode: 0o755 });
    const path = program.startsWith('/') ? program : world.path(program);
    const lease = world.lifecycle.lease(OPERATION);
    const error = await failureOf(lease.launcher.launch({ argv: [path], env: {}, cwd }));
    expect(error).toMatchObject({ code: 'SPAWN_FAILED', message });
    expect(world.store.records.size).toBe(0);
    expect(await lease.close()).toEqual({ empty: true });
    expect(leaseCgroups().filter((name) => name.endsWith(lease.id))).toEqual([]);
  });

  it.each(BOUNDARIES)('LC-10 records who is who, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch(world.script('sleep 60'));
    const record = world.store.only();
    expect(record).toMatchObject({
      schema: 'bridle.lease/v1',
      id: lease.id,
      revision: 1,
      operation: { id: 'run-1', kind: 'run' },
      harness: 'test',
      state: 'owned',
      evidence: [],
    });
    expect(record.owner).toEqual(identify(process.pid));
    expect(record.child).toEqual(identify(child.pid));
    expect(record.supervisor).toEqual(identify(record.supervisor.pid));
    expect(readlinkSync(`/proc/${record.supervisor.pid}/exe`)).toMatch(/bridle-supervisor$/);
    expect(record.reaper).toEqual(identify(record.reaper?.pid ?? 0));
    expect(childrenOf(record.supervisor.pid)).toEqual([record.reaper?.pid]);
    expect(childrenOf(record.reaper?.pid ?? 0)).toEqual([child.pid]);
    expect(record.boundary).toMatchObject({ processGroup: child.pid, limits: [] });
    const path = cgroupOf(record)?.path;
    expect(path !== undefined).toBe(cgroup);
    if (path !== undefined) {
      expect(statSync(path, { bigint: true }).ino.toString()).toBe(cgroupOf(record)?.inode);
      const members = readFileSync(`${path}/cgroup.procs`, 'utf8').trim().split('\n');
      expect(members).toContain(String(child.pid));
      expect(members).not.toContain(String(record.supervisor.pid));
      expect(members).not.toContain(String(record.reaper?.pid));
    }
  });

  it('LC-11 leaves nothing when the lease is closed during the start', async () => {
    const store = new GatedStore();
    await using world = new World({}, store);
    const lease = world.lifecycle.lease(OPERATION);
    const launched = failureOf(lease.launcher.launch(world.script('echo ran > "$1/marker"; sleep 60')));
    await until(() => store.asked.length > 0, 'the record is asked for');
    const closed = lease.close();
    store.decide();
    expect(await closed).toEqual({ empty: true });
    expect(await launched).toMatchObject({ code: 'SPAWN_FAILED' });
    expect(isAlive((store.asked[0] as LeaseRecord).child)).toBe(false);
    expect(existsSync(world.path('marker'))).toBe(false);
    expect(store.records.size).toBe(0);
  });

  it('LC-12 needs one thread for any number of processes', async () => {
    await using world = new World();
    const leases = Array.from({ length: 25 }, () => world.lifecycle.lease(OPERATION));
    await Promise.all(leases.map((lease) => lease.launcher.launch(world.script('sleep 60'))));
    const threads = readdirSync('/proc/self/task').map((task) =>
      readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim(),
    );
    expect(threads.filter((name) => name === 'bridle-spawner')).toHaveLength(1);
    const closed = await Promise.all(leases.map((lease) => lease.close()));
    expect(closed.every((cleanup) => cleanup.empty)).toBe(true);
    expect(world.store.records.size).toBe(0);
  });
});
