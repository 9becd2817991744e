import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { bytes, directory, file, Mounted, put } from '../native-fuse/mounted.js';
import { BOUNDARIES, OPERATION, World } from './support.js';

describe('in a mount of the same process', () => {
  it.each(BOUNDARIES)('LC-30 a program runs whose directory and executable are there, $name', async ({ cgroup }) => {
    await using mounted = await Mounted.start();
    const program = join(mounted.backing(), 'program');
    cpSync('/bin/ls', program);
    mounted.session.publish([
      put(1, 'place', directory(256)),
      put(256, 'note', bytes(257, 'hello')),
      put(1, 'program', { ...file(258, program), mode: 0o555 }),
    ]);
    await using world = new World({ cgroup });
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      argv: [mounted.path('program')],
      env: {},
      cwd: mounted.path('place'),
    });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect({ stdout, stderr, exit: await child.exited }).toEqual({
      stdout: 'note\n',
      stderr: '',
      exit: { code: 0, signal: null },
    });
  });

  it('LC-30 a child that waits for an answer of its own daemon holds up nobody', async () => {
    // The daemon itself has to answer this look-up, and does so only after the start was given up.
    await using mounted = await Mounted.start();
    mounted.decide = () => undefined;
    mkdirSync(join(mounted.backing(), 'inbox'));
    mounted.session.publish([
      put(1, 'inbox', { ...directory(256), kind: 'inbox', path: join(mounted.backing(), 'inbox'), mode: 0o777 }),
    ]);
    await using world = new World();
    const lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      argv: ['/bin/sh', '-c', 'echo {} > .x; mv .x x.req.json'],
      env: { PATH: '/usr/bin:/bin' },
      cwd: mounted.path('inbox'),
    });
    expect(child.pid).toBeGreaterThan(0);
    // The rename is never answered: the clean-up ends it all the same.
    expect(await lease.close()).toEqual({ empty: true });
  });
});
