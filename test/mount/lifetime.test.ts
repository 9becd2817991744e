import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { errnoOf, handIn, response, textOf } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';
import { until } from '../support/until.js';

const CLI = resolve(import.meta.dirname, '../../dist/cli/main.js');

async function isMounted(path: string): Promise<boolean> {
  return (await readFile('/proc/self/mountinfo', 'utf8')).includes(` ${path} `);
}

/** Every inode number below a directory, by path. */
async function inodesBelow(directory: string): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const entry of await readdir(directory, { recursive: true })) {
    found[entry] = (await stat(join(directory, entry))).ino;
  }
  return found;
}

async function runDaemon(mount: string, state: string): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [CLI, 'daemon', '--mount', mount, '--state', state], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code: child.exitCode, stderr };
}

describe('the life of a mount', () => {
  it('MT-35 inode numbers are the same after a restart', async () => {
    await using daemon = await TestDaemon.start();
    await mkdir(daemon.agent('made'));
    await handIn(daemon.agent('made'), 'one', { prompt: 'x', harness: 'echo', session: 'kept' });
    await response(daemon.agent('made'), 'one');
    await daemon.end('SIGKILL');
    await daemon.start();
    const before = await inodesBelow(daemon.mount);
    expect(Object.keys(before)).toContain('agents/made/outbox/one.resp.json');
    expect(await daemon.end('SIGTERM')).toBe(0);
    await daemon.start();
    expect(await inodesBelow(daemon.mount)).toEqual(before);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'MT-36 on %s runs end with a fact, the mount goes, exit 0',
    async (signal) => {
      await using daemon = await TestDaemon.start({
        config: '[harness.script]\nprogram = "/bin/sh"\nargs = ["-c", "cat >/dev/null; exec sleep 600"]\n',
      });
      await handIn(daemon.agent(), 'long', { prompt: 'x', harness: 'script' });
      const events = join(daemon.agent(), 'outbox', 'long.events.jsonl');
      await until(async () => (await textOf(events)).includes('"run.started"'), 'the run has started');
      expect(await daemon.end(signal)).toBe(0);
      expect(await isMounted(daemon.mount)).toBe(false);
      await daemon.start();
      expect(await response(daemon.agent(), 'long')).toMatchObject({
        outcome: 'cancelled',
        cause: 'context_cancelled',
      });
      expect(await daemon.end(signal)).toBe(0);
    },
  );

  it('MT-66 who still uses the mount is named, and does not keep the daemon', async () => {
    await using daemon = await TestDaemon.start();
    const users = [
      spawn('/bin/sh', ['-c', 'exec sleep 300'], { cwd: daemon.agent(), stdio: 'ignore' }),
      spawn('/bin/sh', ['-c', 'echo; exec sleep 300 < "$1"', 'sh', join(daemon.mount, 'version')], { stdio: 'pipe' }),
    ];
    try {
      await until(async () => {
        const links = users.map(({ pid }, which) => readlink(`/proc/${pid}/${which === 0 ? 'cwd' : 'fd/0'}`));
        return (await Promise.all(links)).every((link) => link.startsWith(daemon.mount));
      }, 'both are in the mount');
      expect(await daemon.end()).toBe(0);
      expect(await isMounted(daemon.mount)).toBe(false);
      const line = daemon.log.split('\n').find((text) => text.includes('the mount is in use')) ?? '';
      const named = (JSON.parse(line) as { users: { pid: number; name: string }[] }).users;
      for (const { pid } of users) expect(named).toContainEqual({ pid, name: 'sleep' });
    } finally {
      for (const user of users) {
        const ended = once(user, 'exit');
        user.kill('SIGKILL');
        await ended;
      }
    }
  });

  it('MT-37 the start after kill -9 clears the dead mount', async () => {
    await using daemon = await TestDaemon.start();
    await daemon.end('SIGKILL');
    expect(await isMounted(daemon.mount)).toBe(true);
    expect(await errnoOf(readdir(daemon.mount))).toBe('ENOTCONN');
    await daemon.start();
    expect(await readdir(join(daemon.mount, 'agents'))).toEqual(['default']);
  });

  it('MT-38 what is in the way is refused before anything is mounted', async () => {
    await using daemon = await TestDaemon.start();
    const other = join(daemon.directory, 'other');
    const busyState = await runDaemon(other, daemon.state);
    expect(busyState.code).toBe(75);
    expect(busyState.stderr).toContain(String(daemon.pid));
    expect(await isMounted(other)).toBe(false);

    const busyMount = await runDaemon(daemon.mount, join(daemon.directory, 'state-2'));
    expect(busyMount.code).toBe(75);
    expect(busyMount.stderr).toContain('mounted there');

    const full = join(daemon.directory, 'full');
    await mkdir(full);
    await writeFile(join(full, 'mine'), 'x');
    expect((await runDaemon(full, join(daemon.directory, 'state-3'))).code).toBe(75);
    expect(await readFile(join(full, 'mine'), 'utf8')).toBe('x');
  });

  it.each([
    ['place', 'place'],
    ['place', 'place/state'],
    ['place/mount', 'place'],
    ['link/mount', 'place'],
    ['link', 'place/state'],
  ])('MT-38 a mount at %s with state in %s is refused before anything is made', async (mount, state) => {
    const directory = await mkdtemp(join(tmpdir(), 'contained-'));
    try {
      await mkdir(join(directory, 'place'));
      await symlink('place', join(directory, 'link'));
      const { code, stderr } = await runDaemon(join(directory, mount), join(directory, state));
      expect(code).toBe(78);
      expect(stderr).toContain('contain one another');
      expect(await readdir(join(directory, 'place'))).toEqual([]);
      expect(await isMounted(join(directory, mount))).toBe(false);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
