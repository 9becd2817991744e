import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import { until } from '../support/until.js';
import {
  BOUNDARIES,
  CGROUP_ROOT,
  cgroupOf,
  isAlive,
  kill,
  OPERATION,
  STUBBORN,
  untilGone,
  World,
  writtenIdentity,
} from './support.js';

/** More than are looked at together. */
const MANY = Array.from({ length: 70 }, (_, number) => `member-${number}`);
/** One in a cgroup below the boundary's, one that got out of it, and the parent of all. */
const NAMES = [...MANY, 'below', 'outside', 'parent'];

const place = mkdtempSync(join(tmpdir(), 'signals-'));

beforeAll(() => {
  for (const name of ['polite', 'replacing']) {
    execFileSync('cc', ['-O1', '-o', join(place, name), join(import.meta.dirname, `fixtures/${name}.c`)]);
  }
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

/** A cgroup beside those of boundaries, without limits; disposing waits until the kernel lets it go. */
class OtherCgroup implements AsyncDisposable {
  readonly path = join(CGROUP_ROOT ?? '', `outside-${randomBytes(8).toString('hex')}`);

  constructor() {
    mkdirSync(this.path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await until(() => {
      try {
        rmdirSync(this.path);
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
        throw error;
      }
    }, `${this.path} is removed`);
  }
}

function move(pid: number, cgroup: string): void {
  writeFileSync(join(cgroup, 'cgroup.procs'), String(pid));
}

describe('signals to the processes of a boundary', () => {
  it.each(BOUNDARIES)('LC-39 each hears TERM once, wherever it is, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup, graceMs: 20_000, cleanupTimeoutMs: 40_000 });
    await using other = cgroup ? new OtherCgroup() : undefined;
    const lease = world.lifecycle.lease(OPERATION);
    const process = await lease.launcher.launch({
      argv: [join(place, 'polite'), world.directory, ...NAMES],
      env: {},
      cwd: '/',
    });
    const identities = new Map<string, ProcessIdentity>();
    for (const name of NAMES) identities.set(name, await writtenIdentity(world.directory, name));
    try {
      const own = cgroupOf(world.store.only())?.path;
      if (own !== undefined && other) {
        mkdirSync(join(own, 'below'));
        move(identities.get('below')?.pid ?? 0, join(own, 'below'));
        move(identities.get('outside')?.pid ?? 0, other.path);
      }
      expect(await lease.close()).toEqual({ empty: true });
      expect(await process.exited).toEqual({ code: 0, signal: null });
      const heard = NAMES.map((name) => [name, readFileSync(world.path(`${name}.heard`), 'utf8')]);
      expect(heard).toEqual(NAMES.map((name) => [name, 'TERM\n']));
    } finally {
      for (const identity of identities.values()) kill(identity);
    }
  });

  it.each(BOUNDARIES)('LC-39 a descendant that got out of the cgroup is killed, too, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    await using other = cgroup ? new OtherCgroup() : undefined;
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch(world.script(STUBBORN));
    const grandchild = await writtenIdentity(world.directory, 'grandchild');
    try {
      if (other) move(grandchild.pid, other.path);
      expect(await lease.close()).toEqual({ empty: true });
      expect(isAlive(grandchild)).toBe(false);
    } finally {
      kill(grandchild);
      await untilGone(grandchild);
    }
  });

  it('LC-53 nothing is started in the place of what is killed', async () => {
    await using world = new World({ cgroup: false });
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch({
      argv: [join(place, 'replacing'), world.path('running'), world.path('replaced')],
      env: {},
      cwd: '/',
    });
    await until(() => existsSync(world.path('running')), 'all run');
    expect(await lease.close()).toEqual({ empty: true });
    expect(readFileSync(world.path('replaced'), 'utf8')).toBe('');
  });
});
