import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CheckResult } from '../../src/cli/doctor/check.js';
import { TestDaemon } from '../support/daemon.js';
import { bridle } from './support.js';

const MAIN = resolve(import.meta.dirname, '../../dist/cli/main.js');

const CODES = [
  'NODE_VERSION',
  'KERNEL_VERSION',
  'FUSE_DEVICE',
  'FUSERMOUNT',
  'FUSE_ALLOW_OTHER',
  'OPEN_FILES',
  'LOCKED_MEMORY',
  'USER_NAMESPACES',
  'NATIVE_ADDON',
  'PIDFS',
  'CGROUP_DELEGATION',
  'RUN_LIMITS',
  'LANDLOCK',
  'STALE_MOUNT',
  'STATE_WRITABLE',
  'STATE_FILESYSTEM',
  'DAEMON',
  'HARNESS_CODEX',
  'HARNESS_PI',
  'HARNESS_ECHO',
  'HARNESS_SCRIPT',
];

describe('bridle doctor', () => {
  it('SU-62 gives every check a stable code, and a meaning where something is wrong', async () => {
    const { code, stdout } = await bridle(['doctor', '--json'], { env: { BRIDLE_MOUNT: '/nonexistent/bridle' } });
    const results = JSON.parse(stdout) as CheckResult[];
    expect(results.map((result) => result.code)).toEqual(CODES);
    for (const result of results) expect(result.meaning === null).toBe(result.status === 'ok');
    expect(code).toBe(results.some((result) => result.status === 'failed') ? 1 : 0);
    expect(results.find((result) => result.code === 'DAEMON')).toMatchObject({
      status: 'warning',
      fix: 'bridle daemon',
    });
  });

  it('SU-62 exits 1 when something required is missing', async () => {
    const { code, stdout } = await bridle(['doctor'], { env: { BRIDLE_STATE: '/dev/null/state' } });
    expect(stdout).toMatch(/^failed {2,}STATE_WRITABLE +\S.*\n {8}The daemon keeps/m);
    expect(code).toBe(1);
  });

  it.each([
    ['FUSERMOUNT', { PATH: '/nonexistent' }, 'not on PATH', /^apt-get install fuse3/],
    ['STATE_WRITABLE', { BRIDLE_STATE: '/dev/null/state' }, /^\/dev\/null\S*: E/, null],
    ['STATE_FILESYSTEM', { BRIDLE_STATE: '/dev/shm/not/there/yet' }, 'tmpfs', /--state DIR/],
    ['HARNESS_CODEX', { PATH: '/nonexistent' }, /no executable "codex" on PATH/, null],
  ])('SU-76 finds what is wrong with %s', async (wanted, env, found, fix) => {
    const result = resultOf(wanted, (await bridle(['doctor', '--json'], { env })).stdout);
    expect(result.status).not.toBe('ok');
    expect(result.found).toMatch(found);
    if (fix === null) expect(result.fix).toBeNull();
    else expect(result.fix).toMatch(fix);
  });

  it('SU-76 finds a fusermount3 that does not run as root', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
    try {
      const program = join(directory, 'fusermount3');
      writeFileSync(program, '#!/bin/sh\n');
      chmodSync(program, 0o755);
      const { stdout } = await bridle(['doctor', '--json'], { env: { PATH: directory } });
      const found = `${program} does not run as root`;
      const fix = `chown root ${program} && chmod u+s ${program}`;
      expect(resultOf('FUSERMOUNT', stdout)).toMatchObject({ found, fix });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('SU-76 finds a mount whose daemon is gone', async () => {
    await using daemon = await TestDaemon.start();
    await daemon.end('SIGKILL');
    const result = resultOf('STALE_MOUNT', (await bridle(['doctor', '--json'])).stdout);
    expect(result.status).toBe('warning');
    expect(result.found.split(' ')).toContain(daemon.mount);
    expect(result.fix).toContain(`'${daemon.mount}'`);
  });

  it('SU-76 finds what the machine does not give', async () => {
    const results = await onPoorMachine();
    const of = (code: string) => results.find((result) => result.code === code);
    expect(of('FUSE_DEVICE')).toMatchObject({ status: 'failed', found: '/dev/fuse: ENXIO', fix: 'modprobe fuse' });
    expect(of('OPEN_FILES')).toMatchObject({
      status: 'warning',
      found: '1000',
      fix: expect.stringContaining('ulimit -n'),
    });
    expect(of('LOCKED_MEMORY')).toMatchObject({ status: 'warning', found: '65536' });
    expect(of('USER_NAMESPACES')).toMatchObject({
      status: 'warning',
      found: '/proc/sys/user/max_user_namespaces is 0',
      fix: expect.stringMatching(/^sysctl user\.max_user_namespaces=/),
    });
    expect(of('CGROUP_DELEGATION')).toMatchObject({ status: 'warning', fix: expect.stringContaining('Delegate=yes') });
    expect(of('RUN_LIMITS')).toMatchObject({ status: 'warning', found: 'none on memory, processes, cpu' });
  });
});

function resultOf(code: string, json: string): CheckResult {
  const found = (JSON.parse(json) as CheckResult[]).find((result) => result.code === code);
  if (found === undefined) throw new Error(`no ${code}`);
  return found;
}

/** The doctor in a mount namespace where a socket stands for the device, and cgroups are hidden; with low limits. */
async function onPoorMachine(): Promise<CheckResult[]> {
  const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
  const socket = createServer();
  try {
    await new Promise<void>((listening) => socket.listen(join(directory, 'socket'), listening));
    writeFileSync(join(directory, 'zero'), '0\n');
    const script = `set -e
      mount --bind "$1/socket" /dev/fuse
      mount --bind "$1/zero" /proc/sys/user/max_user_namespaces
      mount -t tmpfs none /sys/fs/cgroup
      ulimit -n 1000
      ulimit -l 64
      exec "$2" "$3" doctor --json`;
    const namespace = process.getuid?.() === 0 ? ['--mount'] : ['--map-root-user', '--mount'];
    const args = [...namespace, '/bin/sh', '-c', script, 'sh', directory, process.execPath, MAIN];
    return await new Promise((finish, fail) => {
      // The exit code is 1, because the device is required.
      execFile('unshare', args, (_error, stdout, stderr) => {
        if (stdout === '') fail(new Error(stderr));
        else finish(JSON.parse(stdout) as CheckResult[]);
      });
    });
  } finally {
    socket.close();
    rmSync(directory, { recursive: true });
  }
}
