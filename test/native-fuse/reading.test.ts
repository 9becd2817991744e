import { appendFileSync, closeSync, openSync, readSync } from 'node:fs';
import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { setImmediate as breathe } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Change } from '../../src/native/fuse.js';
import { until } from '../support/until.js';
import { base, bytes, client, control, directory, file, gid, Mounted, put, sh, startClient, uid } from './mounted.js';

function readAt(fd: number, position: number): string {
  const buffer = Buffer.alloc(200_000);
  return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, position));
}

describe('what is answered from the node table', () => {
  it('MT-01 shows kinds, modes, owners, times, sizes and inode numbers as published', async () => {
    await using mounted = await Mounted.start();
    await writeFile(mounted.backing('log'), '12345');
    mounted.session.publish([
      put(1, 'd', { ...directory(256), uid: 12, gid: 34 }),
      put(256, 'b', bytes(257, 'hello')),
      put(256, 'c', control(258, 'ab')),
      put(256, 'f', file(259, mounted.backing('log'))),
    ]);
    const shown = await sh('cd "$1"; stat -c "%n %i %f %u %g %s %Y" d d/b d/c d/f', mounted.path());
    const backing = Math.floor((await stat(mounted.backing('log'))).mtimeMs / 1000);
    expect(shown.stdout.split('\n')).toEqual([
      'd 256 41ed 12 34 0 1700000000',
      `d/b 257 8124 ${uid} ${gid} 5 1700000000`,
      `d/c 258 81b6 ${uid} ${gid} 2 1700000000`,
      `d/f 259 8124 ${uid} ${gid} 5 ${backing}`,
      '',
    ]);
    expect(await sh('cat "$1/d/b" "$1/d/c" "$1/d/f"', mounted.path())).toMatchObject({ stdout: 'helloab12345' });
    expect(mounted.requests).toEqual([]);
  });

  it('MT-02 lists 20 000 entries once each, also while others come and go', async () => {
    await using mounted = await Mounted.start();
    const count = 20_000;
    const entries = Array.from({ length: count }, (_, i) => put(256, `stays-${i}`, bytes((i + 1) * 512, '')));
    mounted.session.publish([put(1, 'd', directory(256)), ...entries]);
    expect(await readdir(mounted.path('d'))).toHaveLength(count);
    const listing = client<string[]>('print(fs.readdirSync(args[0]))', mounted.path('d'));
    let finished = false;
    const names = listing.finally(() => {
      finished = true;
    });
    for (let i = 1; !finished; i = (i % count) + 1) {
      mounted.session.publish([put(256, `goes-${i}`, bytes(i * 512 + 1, ''))]);
      await breathe();
      mounted.session.publish([{ op: 'remove', parent: 256, name: `goes-${i}` }]);
    }
    const stayed = (await names).filter((name) => name.startsWith('stays-'));
    expect(stayed).toHaveLength(count);
    expect(new Set(stayed).size).toBe(count);
  });

  it('MT-03 lets an open file keep its version: content, size, also unread and removed', async () => {
    await using mounted = await Mounted.start();
    const long = 'v1'.repeat(50_000);
    mounted.session.publish([put(1, 'b', bytes(256, long))]);
    const first = openSync(mounted.path('b'), 'r');
    mounted.session.publish([put(1, 'b', bytes(256, 'v2'))]);
    const second = openSync(mounted.path('b'), 'r');
    mounted.session.publish([put(1, 'b', bytes(256, 'version 3'))]);
    expect(await readFile(mounted.path('b'), 'utf8')).toBe('version 3');
    mounted.session.publish([{ op: 'remove', parent: 1, name: 'b' }]);
    await until(async () => (await readdir(mounted.path())).length === 0, 'the name is gone');
    expect([readAt(second, 0), readAt(first, 0) === long]).toEqual(['v2', true]);
    const { stdout } = await sh(
      'stat -L -c %s "$1" "$2"',
      `/proc/${process.pid}/fd/${first}`,
      `/proc/${process.pid}/fd/${second}`,
    );
    expect(stdout).toBe(`${long.length}\n2\n`);
    closeSync(first);
    closeSync(second);
  });

  it('MT-04 gives every open after publish() the newest version, whatever the kernel caches', async () => {
    await using mounted = await Mounted.start();
    mounted.session.publish([put(1, 'b', bytes(256, 'start'))]);
    for (let round = 0; round < 3000; round++) {
      const text = `${round} ${'x'.repeat(round % 7)}`;
      mounted.session.publish([put(1, 'b', bytes(256, text))]);
      const fd = openSync(mounted.path('b'), 'r');
      const read = readAt(fd, 0);
      closeSync(fd);
      if (read !== text) expect(read).toBe(text);
    }
  });

  it('MT-05 takes cached names, attributes and absences back when they change', async () => {
    await using mounted = await Mounted.start();
    const path = mounted.path('late');
    for (let round = 0; round < 50; round++) {
      await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' });
      mounted.session.publish([put(1, 'late', bytes(256 + round, 'x'.repeat(round)))]);
      await until(async () => (await readdir(mounted.path())).length === 1, 'it is listed');
      await until(
        () =>
          stat(path).then(
            (found) => found.size === round && found.ino === 256 + round,
            () => false,
          ),
        'the name appears although its absence was cached',
      );
      mounted.session.publish([put(1, 'late', { ...bytes(256 + round, 'y'), mode: 0o400 })]);
      await until(
        async () => (await stat(path)).size === 1 && ((await stat(path)).mode & 0o777) === 0o400,
        'it changes',
      );
      mounted.session.publish([{ op: 'remove', parent: 1, name: 'late' }]);
      await until(
        () =>
          stat(path).then(
            () => false,
            () => true,
          ),
        'the name goes',
      );
    }
    mounted.session.publish([put(1, 'd', directory(9000))]);
    expect((await stat(mounted.path('d'))).mode & 0o777).toBe(0o755);
    mounted.session.publish([put(1, 'd', { ...base(9000, 0o700), kind: 'directory' })]);
    await until(async () => ((await stat(mounted.path('d'))).mode & 0o777) === 0o700, 'the directory changes');
  });

  it('MT-06 shows a file node as its backing file is, growing and replaced', async () => {
    await using mounted = await Mounted.start();
    const backing = mounted.backing('log');
    await writeFile(backing, 'one\n');
    mounted.session.publish([put(1, 'log', file(256, backing))]);
    const fd = openSync(mounted.path('log'), 'r');
    expect(readAt(fd, 0)).toBe('one\n');
    for (let round = 0; round < 100; round++) {
      appendFileSync(backing, `${round}\n`);
      expect(readAt(fd, 0).endsWith(`\n${round}\n`)).toBe(true);
    }
    closeSync(fd);
    await writeFile(mounted.backing('next'), 'replaced');
    await rename(mounted.backing('next'), backing);
    mounted.session.publish([put(1, 'log', file(256, backing))]);
    expect(await readFile(mounted.path('log'), 'utf8')).toBe('replaced');
  });

  it('MT-07 answers readers while the JavaScript thread is blocked', async () => {
    await using mounted = await Mounted.start();
    mounted.session.publish([put(1, 'd', directory(256)), put(256, 'b', bytes(257, 'hello'))]);
    const reader = startClient(
      `fs.writeFileSync(args[1], '');
       const times = [];
       for (;;) {
         const found = fs.readdirSync(args[0] + '/d').join() + fs.readFileSync(args[0] + '/d/b', 'utf8');
         times.push(Number(process.hrtime.bigint() / 1000000n));
         if (found !== 'bhello' || fs.existsSync(args[2])) break;
       }
       print(times)`,
      mounted.path(),
      mounted.backing('started'),
      mounted.backing('stop'),
    );
    await until(async () => (await readdir(mounted.backing())).includes('started'), 'the reader runs');
    const now = () => Number(process.hrtime.bigint() / 1_000_000n);
    const from = now();
    while (now() < from + 250);
    const to = now();
    await writeFile(mounted.backing('stop'), '');
    const times = JSON.parse((await reader.outcome).stdout) as number[];
    // More than one answer within the time in which JavaScript could not have given any.
    expect(times.filter((time) => time > from && time < to).length).toBeGreaterThan(1);
  });

  it('MT-08 refuses to change what is published: EROFS, and EPERM for modes, owners and times', async () => {
    await using mounted = await Mounted.start();
    await writeFile(mounted.backing('log'), 'x');
    mounted.session.publish([
      put(1, 'd', directory(256)),
      put(1, 'b', { ...bytes(257, 'hello'), mode: 0o666 }),
      put(1, 'f', { ...file(258, mounted.backing('log')), mode: 0o666 }),
    ]);
    const results = await client<Record<string, string[]>>(
      `process.chdir(args[0]);
       const each = (action) => ['b', 'f', 'd'].map((name) => attempt(() => action(name)));
       print({
         write: ['b', 'f'].map((name) => attempt(() => fs.openSync(name, 'r+'))),
         truncate: ['b', 'f'].map((name) => attempt(() => fs.truncateSync(name, 1))),
         open: ['b', 'f'].map((name) => attempt(() => fs.openSync(name, 'w'))),
         chmod: each((name) => fs.chmodSync(name, 0o600)),
         chown: each((name) => fs.chownSync(name, 1, 1)),
         utimes: each((name) => fs.utimesSync(name, 1, 1)),
         unlink: ['b', 'f'].map((name) => attempt(() => fs.unlinkSync(name))),
         rename: each((name) => fs.renameSync(name, 'other')),
         make: [attempt(() => fs.writeFileSync('new', '')), attempt(() => fs.rmdirSync('d')),
           attempt(() => fs.symlinkSync('b', 'new')), attempt(() => fs.linkSync('b', 'new'))],
       })`,
      mounted.path(),
    );
    const two = (code: string) => [code, code];
    const three = (code: string) => [code, code, code];
    expect(results).toEqual({
      write: two('EROFS'),
      truncate: two('EROFS'),
      open: two('EROFS'),
      chmod: three('EPERM'),
      chown: three('EPERM'),
      utimes: three('EPERM'),
      unlink: two('EROFS'),
      rename: three('EROFS'),
      make: ['EROFS', 'EROFS', 'EROFS', 'EROFS'],
    });
    expect(mounted.requests).toEqual([]);
  });

  it('MT-09 applies changes in order, keeps a subtree together and refuses what contradicts the tree', async () => {
    await using mounted = await Mounted.start();
    const { session } = mounted;
    session.publish([put(1, 'd', directory(256)), put(256, 'e', directory(257)), put(257, 'b', bytes(258, 'x'))]);
    expect(session.stats()).toMatchObject({ nodes: 4, handedToJs: 0 });
    const refused = (...changes: Change[]) => {
      try {
        session.publish(changes);
        return 'ok';
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? (error as Error).name;
      }
    };
    expect(refused(put(999, 'x', directory(300)))).toBe('ENOENT');
    expect(refused(put(258, 'x', directory(300)))).toBe('ENOTDIR');
    expect(refused(put(1, 'twice', bytes(258, 'x')))).toBe('EEXIST');
    expect(refused({ op: 'remove', parent: 1, name: 'none' })).toBe('ENOENT');
    expect(refused(put(1, 'a/b', directory(300)))).toBe('TypeError');
    expect(refused(put(1, '..', directory(300)))).toBe('TypeError');
    expect(refused(put(1, 'x', directory(0)))).toBe('TypeError');
    expect(refused(put(1, 'x', directory(2 ** 53)))).toBe('RangeError');
    expect(refused(put(1, 'x', { ...directory(300), mode: 0o100000 }))).toBe('RangeError');
    expect(session.stats().nodes).toBe(4);
    session.publish([{ op: 'remove', parent: 1, name: 'd' }]);
    expect(session.stats().nodes).toBe(1);
    await until(
      () =>
        stat(mounted.path('d', 'e', 'b')).then(
          () => false,
          () => true,
        ),
      'the subtree goes',
    );
  });
});
