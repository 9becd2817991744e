import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { LaunchSpec } from '../../src/contract/harness.js';
import { planLimits } from '../../src/lifecycle/linux/limits.js';
import { failureOf, leaseCgroups, OPERATION, World } from './support.js';

const isRoot = process.getuid?.() === 0;
const NOBODY = { uid: 65_534, gid: 65_533, groups: [65_532] };

/** Runs a script to its end. */
async function outputOf(world: World, script: string, wishes: Partial<LaunchSpec>) {
  await using lease = world.lifecycle.lease(OPERATION);
  const child = await lease.launcher.launch({ ...world.script(script), ...wishes });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { stdout, stderr, exit: await child.exited, notEnforced: child.notEnforced };
}

/** A start that must fail, and leaves nothing. */
async function refusalOf(world: World, wishes: Partial<LaunchSpec>): Promise<string> {
  const lease = world.lifecycle.lease(OPERATION);
  const error = await failureOf(lease.launcher.launch({ ...world.script('echo ran > "$1/ran"'), ...wishes }));
  expect(error.code).toBe('SPAWN_FAILED');
  expect(world.store.records.size).toBe(0);
  expect(leaseCgroups().filter((name) => name.endsWith(lease.id))).toEqual([]);
  expect(existsSync(world.path('ran'))).toBe(false);
  return error.message;
}

describe('who the program runs as', () => {
  it('LC-15 is exactly the user and the groups that were named, or the start is refused', async () => {
    await using world = new World();
    const script = 'id -u; id -g; id -G; grep -E "^(Uid|Gid|Groups|CapEff)" /proc/self/status';
    if (!isRoot) {
      expect(await refusalOf(world, { credentials: NOBODY })).toBe('credentials: EPERM');
      return;
    }
    const { stdout, stderr } = await outputOf(world, script, { credentials: NOBODY });
    expect(stderr).toBe('');
    expect(stdout).toContain('65534\n65533\n65533 65532\n');
    expect(stdout).toContain('Uid:\t65534\t65534\t65534\t65534\nGid:\t65533\t65533\t65533\t65533\nGroups:\t65532 \n');
    expect(stdout).toContain('CapEff:\t0000000000000000');
  });

  it('LC-15 what runs as another user dies with its parent all the same', async () => {
    if (!isRoot) return expect(await refusalOf(await new World(), { credentials: NOBODY })).toBe('credentials: EPERM');
    await using world = new World({ cgroup: false });
    const lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({ ...world.script('sleep 600'), credentials: NOBODY });
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\t65534/m);
    expect(await lease.close()).toEqual({ empty: true });
    expect(existsSync(`/proc/${child.pid}`)).toBe(false);
  });

  it('LC-19 cannot gain privileges when that is wished', async () => {
    await using world = new World();
    const script = 'grep NoNewPrivs /proc/self/status';
    expect((await outputOf(world, script, { noNewPrivileges: true })).stdout).toBe('NoNewPrivs:\t1\n');
    expect((await outputOf(world, script, {})).stdout).toBe('NoNewPrivs:\t0\n');
  });
});

describe('limits', () => {
  it('LC-16 of each process are set as they were named', async () => {
    await using world = new World();
    const script = 'ulimit -n; ulimit -c; ulimit -Hn; ulimit -f';
    const { stdout } = await outputOf(world, script, { rlimits: { nofile: 77, core: 0, fsize: 1024 * 512 } });
    expect(stdout).toBe('77\n0\n77\n1024\n');
    if (!isRoot) expect(await refusalOf(world, { rlimits: { nofile: 2 ** 40 } })).toBe('rlimits: EPERM');
  });

  it('LC-17 of the whole run are enforced, or named as not enforced', async () => {
    await using world = new World();
    const { limits } = world.lifecycle.strength;
    // Twenty processes at once, eight may be.
    const script = 'for i in $(seq 20); do sleep 5 & done; wait; echo all';
    const many = await outputOf(world, script, { limits: { processes: 8 } });
    if (limits.includes('processes')) {
      expect(many.notEnforced).toEqual([]);
      expect(many.stderr).toMatch(/fork/i);
      expect(many.exit.code).not.toBe(0);
    } else {
      expect(many.notEnforced).toEqual([{ wish: 'processes', reason: expect.stringContaining('pids controller') }]);
      expect(many.stdout).toBe('all\n');
    }
    const hungry = `exec "${process.execPath}" -e "const a=[];for(;;)a.push(Buffer.alloc(1<<20,1))"`;
    const bounded = { limits: { memoryBytes: 96 * 1024 * 1024, cpus: 0.5 } };
    if (limits.includes('memory')) {
      const fed = await outputOf(world, hungry, bounded);
      expect(fed.exit).toEqual({ code: null, signal: 9 });
    }
    const unlimited = await outputOf(world, 'true', bounded);
    expect(unlimited.notEnforced.map(({ wish }) => wish)).toEqual([
      ...(limits.includes('memory') ? [] : ['memoryBytes']),
      ...(limits.includes('cpu') ? [] : ['cpus']),
    ]);
  });

  it('LC-17 of both versions of cgroups get the files of that version', () => {
    const wishes = { memoryBytes: 8192, processes: 3, cpus: 0.25 };
    const two = { version: 2, directory: '/two' } as const;
    const unified = { root: '/two', controllers: { memory: two, pids: two, cpu: two } };
    expect(planLimits(wishes, unified, 'name', true)).toEqual({
      directories: [
        {
          path: '/two/name',
          settings: [
            { file: 'memory.max', value: '8192' },
            { file: 'pids.max', value: '3' },
            { file: 'cpu.max', value: '25000 100000' },
          ],
        },
      ],
      notEnforced: [],
    });
    expect(planLimits(wishes, unified, 'name', false).notEnforced.map(({ wish }) => wish)).toEqual(Object.keys(wishes));
    const one = { version: 1, directory: '/cpu' } as const;
    expect(planLimits({ cpus: 2 }, { root: null, controllers: { cpu: one } }, 'name', false).directories).toEqual([
      {
        path: '/cpu/name',
        settings: [
          { file: 'cpu.cfs_period_us', value: '100000' },
          { file: 'cpu.cfs_quota_us', value: '200000' },
        ],
      },
    ]);
  });
});

describe('files', () => {
  const SYSTEM = ['/usr', '/lib', '/lib64', '/bin', '/etc', '/dev/null', '/proc'].filter((path) => existsSync(path));

  it('LC-18 are denied that were not named, and the kernel does it', async () => {
    await using world = new World();
    const [open, secret] = [world.path('open'), world.path('secret')];
    mkdirSync(open);
    writeFileSync(join(open, 'notes'), 'mine\n');
    writeFileSync(secret, 'hidden\n');
    const wishes = { paths: { readOnly: SYSTEM, readWrite: [open] } };
    if (world.lifecycle.strength.landlock === null) {
      expect(await refusalOf(world, wishes)).toMatch(/^paths: this kernel has no Landlock/);
      return;
    }
    const script = `cat "$1/open/notes"; echo more >> "$1/open/notes"; cat "$1/secret"; echo x > "$1/new"; echo x > /usr/x
      grep NoNewPrivs /proc/self/status; (kill -0 $PPID) && echo signalled`;
    const { stdout, stderr, notEnforced } = await outputOf(world, script, wishes);
    expect(stdout).toContain('mine\n');
    expect(stdout).toContain('NoNewPrivs:\t1\n');
    expect(stdout).not.toContain('hidden');
    expect(stderr).toMatch(/secret: Permission denied/);
    expect(existsSync(world.path('new'))).toBe(false);
    expect(existsSync('/usr/x')).toBe(false);
    expect(readFileSync(join(open, 'notes'), 'utf8')).toBe('mine\nmore\n');
    // Version 6 also keeps it from signalling what contains it.
    const scoped = world.lifecycle.strength.landlock >= 6;
    expect(stdout.includes('signalled')).toBe(!scoped);
    expect(notEnforced.length > 0).toBe(world.lifecycle.strength.landlock < 3);
  });

  it('LC-18 that do not exist cannot be named', async () => {
    await using world = new World();
    const message = await refusalOf(world, { paths: { readOnly: ['/nonexistent/place'], readWrite: [] } });
    expect(message).toMatch(/^paths \/nonexistent\/place: ENOENT|^paths: this kernel/);
  });
});

describe('wishes', () => {
  it.each<[string, Partial<LaunchSpec>, RegExp]>([
    ['a terminal without rows', { terminal: { rows: 0, columns: 80 } }, /^spec: terminal\.rows: /],
    ['a uid that means nobody', { credentials: { uid: -1, gid: 0, groups: [] } }, /^spec: credentials\.uid: /],
    ['a relative path', { paths: { readOnly: ['here'], readWrite: [] } }, /^spec: paths\.readOnly\.0: /],
    ['a negative limit', { limits: { processes: -1 } }, /^spec: limits\.processes: /],
    ['an unknown limit', { limits: { bytes: 1 } as never }, /^spec: limits: /],
    ['an unknown rlimit', { rlimits: { nosuch: 1 } as never }, /^spec: rlimits/],
  ])('LC-03 refuses %s', async (_name, wishes, message) => {
    await using world = new World({ supervisorExecutable: '/nonexistent' });
    expect(await refusalOf(world, wishes)).toMatch(message);
  });

  it('LC-35 leave nothing beside the boundary', async () => {
    await using world = new World();
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch({ ...world.script('sleep 60'), limits: { processes: 50, memoryBytes: 2 ** 30 } });
    const { boundary } = world.store.only();
    const made = boundary.kind === 'job' ? [] : boundary.limits;
    expect(made.every((path) => statSync(path).isDirectory())).toBe(true);
    expect(await lease.close()).toEqual({ empty: true });
    expect(made.filter((path) => existsSync(path))).toEqual([]);
  });
});
