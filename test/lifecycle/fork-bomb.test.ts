import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { identify } from '../../src/native/identity.js';
import { until } from '../support/until.js';
import { BOUNDARIES, kill, OPERATION, World } from './support.js';

const LIMIT = 100;
/** Forks of a bomb that nothing else bounds: enough to be faster than one sweep, few enough for any machine. */
const BOUND = 300;

const place = mkdtempSync(join(tmpdir(), 'bomb-'));
const program = join(place, 'bomb');

beforeAll(() => {
  execFileSync('cc', ['-O1', '-o', program, join(import.meta.dirname, 'fixtures/bomb.c')]);
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

function executableOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    // It ended, or is a process of the kernel.
    return '';
  }
}

function bombs(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && executableOf(name) === program);
}

it.each(BOUNDARIES.flatMap((row) => [true, false].map((limited) => ({ ...row, limited }))))(
  'LC-32 a fork bomb is emptied, $name, bounded by a limit: $limited',
  async ({ cgroup, limited }) => {
    await using world = new World({ cgroup });
    // Where the machine has no such limit the bomb has to bound itself.
    const bounded = limited && world.lifecycle.strength.limits.includes('processes');
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch({
      argv: [program, world.path('burning'), bounded ? '0' : String(BOUND)],
      env: {},
      cwd: '/',
      ...(bounded ? { limits: { processes: LIMIT } } : {}),
    });
    await until(() => existsSync(world.path('burning')), 'the bomb burns');
    if (bounded) expect(bombs().length).toBeLessThanOrEqual(LIMIT);
    try {
      expect(await lease.close()).toEqual({ empty: true });
      expect(bombs()).toEqual([]);
    } finally {
      for (const pid of bombs()) kill(identify(Number(pid)) ?? null);
    }
  },
);
