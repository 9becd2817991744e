import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { supervisorExecutable } from '../../src/native/addon.js';
import { identify } from '../../src/native/identity.js';
import { until } from '../support/until.js';
import { BOUNDARIES, failureOf, kill, leaseCgroups, OPERATION, untilGone, World } from './support.js';

let directory = '';
let falseSupervisor = '';

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'false-supervisor-'));
  falseSupervisor = join(directory, 'program');
  execFileSync('cc', ['-O1', '-o', falseSupervisor, join(import.meta.dirname, 'fixtures/false-supervisor.c')]);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A program that serves, and goes wrong as its name says. */
function wrong(mode: string): string {
  const path = join(directory, mode);
  copyFileSync(falseSupervisor, path);
  return path;
}

/** Children of any thread of this process, dead ones included. */
function children(): number[] {
  const tasks = readdirSync('/proc/self/task');
  const lists = tasks.map((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8').trim());
  return lists.flatMap((list) => (list === '' ? [] : list.split(' ').map(Number)));
}

/** What a look at a process gives; empty for one that is dead or gone. */
function lookAt(look: () => string): string {
  try {
    return look();
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

function environmentOf(pid: number): string {
  return lookAt(() => readFileSync(`/proc/${pid}/environ`, 'utf8')).replaceAll('\0', '');
}

function programOf(pid: number): string {
  return lookAt(() => readlinkSync(`/proc/${pid}/exe`));
}

/** The fork server of this process: of all children that run the program, the one without a lease. */
function forkServers(): number[] {
  const isServer = (pid: number): boolean =>
    programOf(pid) === supervisorExecutable && environmentOf(pid) === `BRIDLE_LEASE=${'0'.repeat(32)}`;
  return children().filter(isServer);
}

/** Children with a lease; the dead have neither a program nor an environment. */
function supervisors(): number[] {
  return children().filter((pid) => !environmentOf(pid).endsWith('0'.repeat(32)));
}

function cgroupsOf(leases: readonly { readonly id: string }[]): string[] {
  return leaseCgroups().filter((name) => leases.some(({ id }) => name.endsWith(id)));
}

describe('the fork server', () => {
  it.each([
    ['is missing', '/nonexistent/supervisor', /^supervisor: posix_spawn \/nonexistent\/supervisor: ENOENT/],
    ['ends early', '/bin/true', /^supervisor: it ended with status 0/],
    ['refuses', '/bin/false', /^supervisor: it ended with status 1/],
  ])('LC-09 fails the start when the program %s', async (_name, supervisorExecutable, message) => {
    await using world = new World({ supervisorExecutable });
    for (let time = 0; time < 2; time += 1) {
      const error = await failureOf(world.lifecycle.lease(OPERATION).launcher.launch(world.script('true')));
      expect(error).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(message) });
    }
    expect(world.store.records.size).toBe(0);
  });

  it.each([
    ['babble', /^protocol: /],
    ['mute', /^supervisor: no answer in 300 ms/],
    ['other-version', /^protocol: EPROTO/],
    ['stranger', /^supervisor: fork: ECHILD/],
    ['long', /^supervisor: it ended with status /],
  ])('LC-09 fails the start when the program does this: %s', async (mode, message) => {
    await using world = new World({
      supervisorExecutable: wrong(mode),
      startTimeoutMs: mode === 'mute' ? 300 : 30_000,
      cleanupTimeoutMs: 100,
    });
    const lease = world.lifecycle.lease(OPERATION);
    const error = await failureOf(lease.launcher.launch(world.script('true')));
    expect(error).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(message) });
    expect(world.store.records.size).toBe(0);
    expect(cgroupsOf([lease])).toEqual([]);
  });

  it('LC-37 forks every supervisor as a child of this process, with its lease in the environment', async () => {
    await using world = new World();
    const leases = Array.from({ length: 3 }, () => world.lifecycle.lease(OPERATION));
    await Promise.all(leases.map((lease) => lease.launcher.launch(world.script('sleep 600'))));
    const records = [...world.store.records.values()] as { id: string; supervisor: { pid: number } }[];
    expect(records).toHaveLength(3);
    for (const { id, supervisor } of records) {
      expect(children()).toContain(supervisor.pid);
      expect(environmentOf(supervisor.pid)).toBe(`BRIDLE_LEASE=${id}`);
      expect(programOf(supervisor.pid)).toBe(supervisorExecutable);
    }
    expect(forkServers()).toHaveLength(1);
  });

  it.each(BOUNDARIES)('LC-38 dies and costs neither a run nor the next start, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch(world.script('read line; echo "got $line"'));
    const [server = 0] = forkServers();
    const identity = identify(server);
    if (!identity) throw new Error('there is no fork server');
    kill(identity);
    await untilGone(identity);

    child.stdin.end('on\n');
    expect(await text(child.stdout)).toBe('got on\n');
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(await lease.close()).toEqual({ empty: true });
    const next = world.lifecycle.lease(OPERATION);
    const { exited } = await next.launcher.launch({ argv: ['/bin/true'], env: {}, cwd: '/' });
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(await next.close()).toEqual({ empty: true });
    expect(forkServers()).toHaveLength(1);
  });

  it('LC-38 dies in the middle of many starts: each works or fails, and nothing is left', async () => {
    await using world = new World();
    let failed = 0;
    for (let round = 0; round < 20; round += 1) {
      const leases = Array.from({ length: 5 }, () => world.lifecycle.lease(OPERATION));
      const starts = leases.map((lease) => lease.launcher.launch({ argv: ['/bin/true'], env: {}, cwd: '/' }));
      for (const pid of forkServers()) {
        const identity = identify(pid);
        if (identity) kill(identity);
      }
      for (const { status, reason } of (await Promise.allSettled(starts)) as PromiseRejectedResult[]) {
        if (status !== 'rejected') continue;
        failed += 1;
        expect(reason).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(/^supervisor: /) });
      }
      const cleanups = await Promise.all(leases.map((lease) => lease.close()));
      expect(cleanups.every(({ empty }) => empty)).toBe(true);
      expect(cgroupsOf(leases)).toEqual([]);
    }
    expect(failed).toBeGreaterThan(0);
    expect(world.store.records.size).toBe(0);
    // Those that were forked and never told of leave, too, and are reaped.
    await until(() => supervisors().length === 0, 'no supervisor is left, alive or dead');
    expect(forkServers().length).toBeLessThanOrEqual(1);
  });
});
