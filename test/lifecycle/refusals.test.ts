import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findCgroupPlaces } from '../../src/lifecycle/linux/cgroup-mounts.js';
import { DIST } from './fake-daemon.js';
import { failureOf, leaseCgroups, OPERATION, World } from './support.js';

const FIXTURE = join(import.meta.dirname, 'fixtures/refused.mjs');

/** Runs the fixture in a mount namespace of its own, after a preparation as root of that namespace. */
async function inNamespace(prepare: string, directory: string, ...options: string[]): Promise<Record<string, unknown>> {
  const script = `set -e; ${prepare}\nexec "$NODE" "$FIXTURE" "$1" "$2"`;
  const args = [
    ...(process.getuid?.() === 0 ? [] : ['--map-root-user']),
    ...['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', directory, options[0] ?? '{}'],
  ];
  const env = { ...process.env, NODE: process.execPath, FIXTURE, BRIDLE_DIST_DIR: DIST };
  const { stdout } = await promisify(execFile)('unshare', args, { env });
  return JSON.parse(stdout) as Record<string, unknown>;
}

const { root } = findCgroupPlaces();

describe('a start that cannot be', () => {
  it('LC-07 on a full disk leaves nothing, and says so', async () => {
    await using world = new World();
    const outcome = await inNamespace(
      'mount -t tmpfs -o size=4m none "$1"',
      world.directory,
      JSON.stringify({ fill: true, root }),
    );
    expect(outcome).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(/^record: .*ENOSPC/s) });
    expect(outcome).toMatchObject({ left: [], cgroups: [] });
  });

  it('LC-07 with a state directory that became read-only leaves nothing, and says so', async () => {
    await using world = new World();
    const outcome = await inNamespace(
      'mount -t tmpfs none "$1"',
      world.directory,
      JSON.stringify({ readOnly: true, root }),
    );
    expect(outcome).toMatchObject({ code: 'SPAWN_FAILED', message: expect.stringMatching(/^record: .*EROFS/s) });
    expect(outcome).toMatchObject({ left: [], cgroups: [] });
  });

  it('LC-36 whose cgroup may not be made is refused, not weakened', async () => {
    await using world = new World();
    if (root === null) {
      expect(world.lifecycle.strength.kind).toBe('subreaper');
      return;
    }
    const outcome = await inNamespace('', world.directory, JSON.stringify({ hideCgroups: true, root }));
    expect(outcome).toMatchObject({
      code: 'SPAWN_FAILED',
      message: expect.stringMatching(/^cgroup \/.*: EROFS$/),
      left: [],
      cgroups: [],
    });
  });

  it('LC-03 with three mebibytes of arguments is refused before any process', async () => {
    await using world = new World({ supervisorExecutable: '/nonexistent' });
    const argv = ['/bin/true', ...Array.from({ length: 48 }, () => 'x'.repeat(65_535))] as [string, ...string[]];
    const error = await failureOf(world.lifecycle.lease(OPERATION).launcher.launch({ argv, env: {}, cwd: '/' }));
    expect(error.message).toMatch(/^spec: arguments and environment take 3145\d{3} bytes, the limit is 262144/);
    expect(leaseCgroups()).toEqual(leaseCgroups());
    expect(readdirSync(world.path('witness'))).toEqual([]);
  });
});
