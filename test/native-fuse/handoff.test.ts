import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { client, directory, gid, Mounted, put, sh, startClient, uid } from './mounted.js';

const { EEXIST, EFBIG } = constants.errno;

async function withInbox(): Promise<Mounted> {
  const mounted = await Mounted.start();
  mounted.publishInbox();
  return mounted;
}

describe('hand-off through an inbox', () => {
  it('MT-10 hands the content of a renamed file over, with the caller, and answers the rename', async () => {
    await using mounted = await withInbox();
    const done = await sh('cd "$1"; printf %s "{}" > .a.tmp; mv .a.tmp a.req.json; echo $$', mounted.path('inbox'));
    expect(done).toMatchObject({ code: 0, stderr: '' });
    expect(mounted.requests).toHaveLength(1);
    const request = await mounted.request('handoff');
    expect(request).toMatchObject({ inbox: 512, temporary: '.a.tmp', name: 'a.req.json', uid, gid });
    expect(Buffer.from(request.bytes ?? []).toString()).toBe('{}');
    expect(request.pid).toBeGreaterThan(1);
    expect(await readdir(mounted.path('inbox'))).toEqual(['a.req.json']);
    expect(await readdir(mounted.backing('in'))).toEqual(['a.req.json']);
  });

  it('MT-10 names the process of the caller, not its thread', async () => {
    await using mounted = await withInbox();
    // fs.promises works on a thread of the pool, whose id is not the process id.
    const running = startClient(
      `fs.writeFileSync(args[0] + '/t', 'x');
       fs.promises.rename(args[0] + '/t', args[0] + '/a.req.json').then(() => print(process.pid))`,
      mounted.path('inbox'),
    );
    expect((await running.outcome).stdout).toBe(String(running.pid));
    expect((await mounted.request('handoff')).pid).toBe(running.pid);
  });

  it('MT-11 gives a refusal back as errno and leaves the file where and what it was', async () => {
    await using mounted = await withInbox();
    mounted.decide = (request) => (request.op === 'handoff' ? EEXIST : 0);
    const results = await client<unknown[]>(
      `process.chdir(args[0]);
       fs.writeFileSync('t', 'one');
       const refused = attempt(() => fs.renameSync('t', 'a.req.json'));
       fs.appendFileSync('t', ' two');
       print([refused, fs.readdirSync('.'), fs.readFileSync('t', 'utf8')])`,
      mounted.path('inbox'),
    );
    expect(results).toEqual(['EEXIST', ['t'], 'one two']);
  });

  it('MT-12 hands over no content of a file above 1 MiB, and all of one of 1 MiB', async () => {
    await using mounted = await withInbox();
    mounted.decide = (request) => (request.op === 'handoff' && request.bytes === null ? EFBIG : 0);
    const results = await client<unknown[]>(
      `process.chdir(args[0]);
       fs.writeFileSync('most', Buffer.alloc(1 << 20, 97));
       fs.writeFileSync('more', Buffer.alloc((1 << 20) + 1, 97));
       print([attempt(() => fs.renameSync('most', 'most.req.json')), attempt(() => fs.renameSync('more', 'more.req.json'))])`,
      mounted.path('inbox'),
    );
    expect(results).toEqual(['ok', 'EFBIG']);
    const [most] = mounted.requests;
    expect(most?.op === 'handoff' && most.bytes?.byteLength).toBe(1 << 20);
  });

  it.each([
    { answer: 0, renamed: 'ok', write: 'EROFS', content: 'x' },
    { answer: EEXIST, renamed: 'EEXIST', write: 'ok', content: 'y' },
  ])('MT-13 lets nobody change the file while its hand-off waits; then $renamed', async (expected) => {
    await using mounted = await withInbox();
    mounted.decide = () => undefined;
    // The kernel itself makes a write to a file that is being renamed wait, so only an open gets EBUSY.
    const writer = startClient(
      `process.chdir(args[0]);
       const settled = (promise) => promise.then(() => 'ok', (error) => error.code);
       (async () => {
         const file = await fs.promises.open('t', 'w+');
         await file.write('x');
         const rename = settled(fs.promises.rename('t', 'a.req.json'));
         let opened;
         do { opened = await settled(fs.promises.open('t', 'r+').then((other) => other.close())); } while (opened === 'ok');
         const write = settled(file.write('y', 0));
         fs.writeFileSync(args[1], '');
         print([opened, await rename, await write]);
       })();`,
      mounted.path('inbox'),
      mounted.backing('waiting'),
    );
    const request = await mounted.request('handoff');
    await until(async () => (await readdir(mounted.backing())).includes('waiting'), 'the client met the frozen file');
    expect(Buffer.from(request.bytes ?? []).toString()).toBe('x');
    expect(mounted.session.answer(request.token, expected.answer)).toBe(true);
    const { stdout, stderr } = await writer.outcome;
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual(['EBUSY', expected.renamed, expected.write]);
    const [name = ''] = await readdir(mounted.path('inbox'));
    expect(await readFile(mounted.path('inbox', name), 'utf8')).toBe(expected.content);
  });

  it('MT-14 never lets a file change, move or go after it was handed in', async () => {
    await using mounted = await withInbox();
    const results = await client<Record<string, unknown>>(
      `process.chdir(args[0]);
       const fd = fs.openSync('t', 'w+');
       fs.writeSync(fd, 'x');
       fs.renameSync('t', 'a.req.json');
       const old = attempt(() => fs.writeSync(fd, 'y', 0));
       print({
         old,
         cut: attempt(() => fs.ftruncateSync(fd, 0)),
         append: attempt(() => fs.appendFileSync('a.req.json', 'y')),
         mode: attempt(() => fs.fchmodSync(fd, 0o600)),
         rename: attempt(() => fs.renameSync('a.req.json', 'b')),
         again: attempt(() => fs.renameSync('a.req.json', 'b.req.json')),
         unlink: attempt(() => fs.unlinkSync('a.req.json')),
         shown: (fs.statSync('a.req.json').mode & 0o7777).toString(8),
         content: fs.readFileSync('a.req.json', 'utf8'),
       })`,
      mounted.path('inbox'),
    );
    expect(results).toEqual({
      old: 'EROFS',
      cut: 'EROFS',
      append: uid === 0 ? 'EROFS' : 'EACCES', // the mode forbids it to an ordinary user already
      mode: 'EROFS',
      rename: 'EROFS',
      again: 'EROFS',
      unlink: 'EROFS',
      shown: '440',
      content: 'x',
    });
    expect(mounted.requests).toHaveLength(1);
  });

  it('MT-15 keeps the older file and drops the newer when an accepted name is there already', async () => {
    await using mounted = await withInbox();
    const done = await sh(
      'cd "$1"; echo one > a; mv a x.req.json; echo one > b; mv b x.req.json; ls; cat x.req.json',
      mounted.path('inbox'),
    );
    expect(done).toMatchObject({ code: 0, stdout: 'x.req.json\none\n' });
    expect(mounted.requests).toHaveLength(2);
    expect(await readdir(mounted.backing('in'))).toEqual(['x.req.json']);
  });

  it('MT-16 removes a consumed request everywhere and gives its inode number away safely', async () => {
    await using mounted = await withInbox();
    for (let round = 0; round < 20; round++) {
      const done = await sh(
        'cd "$1"; echo "$2" > t; mv t x.req.json; cat x.req.json',
        mounted.path('inbox'),
        `r${round}`,
      );
      expect(done).toMatchObject({ code: 0, stdout: `r${round}\n` });
      mounted.session.publish([{ op: 'consume', parent: 512, name: 'x.req.json' }]);
      await until(async () => (await readdir(mounted.backing('in'))).length === 0, 'the backing file is gone');
      expect(await sh('cat "$1"', mounted.path('inbox', 'x.req.json'))).toMatchObject({ code: 1 });
    }
    expect(await readdir(mounted.path('inbox'))).toEqual([]);
  });

  it('MT-17 refuses every rename across directories with EXDEV, and exchange with EINVAL', async () => {
    await using mounted = await withInbox();
    mounted.publishInbox(768, 'other', 'other');
    mounted.session.publish([put(1, 'plain', directory(1024))]);
    const script = `process.chdir(args[0]);
      fs.writeFileSync('inbox/t', 'x');
      fs.writeFileSync(args[1] + '/outside', 'x');
      print([
        attempt(() => fs.renameSync('inbox/t', 'other/a.req.json')),
        attempt(() => fs.renameSync('inbox/t', 'plain/t')),
        attempt(() => fs.renameSync('inbox/t', 'a.req.json')),
        attempt(() => fs.renameSync(args[1] + '/outside', 'inbox/a.req.json')),
        attempt(() => fs.renameSync('plain', 'plain2')),
      ])`;
    const results = await client<string[]>(script, mounted.path(), mounted.backing());
    expect(results).toEqual(['EXDEV', 'EXDEV', 'EXDEV', 'EXDEV', 'EROFS']);
    expect(mounted.requests).toEqual([]);
  });

  it('MT-18 makes nothing but regular files, and none under a request name', async () => {
    await using mounted = await withInbox();
    const inbox = mounted.path('inbox');
    for (const script of [
      'mkfifo "$1/a"',
      'ln -s /etc/passwd "$1/a"',
      'mkdir "$1/a"',
      'echo > "$1/a.req.json"',
      'echo > "$1/t"; ln "$1/t" "$1/a"',
    ]) {
      const { code, stderr } = await sh(script, inbox);
      expect([script, code === 0, /not permitted/.test(stderr)]).toEqual([script, false, true]);
    }
    expect(await readdir(inbox)).toEqual(['t']);
  });

  it('MT-19 judges names: not UTF-8, control characters, too long', async () => {
    await using mounted = await withInbox();
    const results = await client<string[]>(
      `process.chdir(args[0]);
       const create = (name) => attempt(() => fs.closeSync(fs.openSync(name, 'wx')));
       fs.writeFileSync('t', '');
       print([
         create(Buffer.from([0x61, 0xff])), create(Buffer.from([0xc0, 0xaf])), create(Buffer.from([0xed, 0xa0, 0x80])),
         create('a\\nb'), create('a'.repeat(256)), create('a'.repeat(255)), create('é😀'),
         attempt(() => fs.renameSync('t', Buffer.from([0x62, 0xfe]))),
         attempt(() => fs.renameSync('t', Buffer.concat([Buffer.from([0xfe]), Buffer.from('.req.json')]))),
       ])`,
      mounted.path('inbox'),
    );
    expect(results).toEqual(['EILSEQ', 'EILSEQ', 'EILSEQ', 'EINVAL', 'ENAMETOOLONG', 'ok', 'ok', 'EILSEQ', 'EILSEQ']);
    expect(mounted.requests).toEqual([]);
  });

  it('MT-20 bounds an inbox: 4096 temporary files of 16 MiB', async () => {
    await using mounted = await withInbox();
    const results = await client<unknown[]>(
      `process.chdir(args[0]);
       const fd = fs.openSync('t0', 'w');
       const most = 16 << 20;
       const sizes = [
         attempt(() => fs.ftruncateSync(fd, most)), attempt(() => fs.ftruncateSync(fd, most + 1)),
         attempt(() => fs.writeSync(fd, 'x', most)), attempt(() => fs.writeSync(fd, 'x', most - 1)),
       ];
       for (let i = 1; i < 4096; i++) fs.closeSync(fs.openSync('t' + i, 'wx'));
       print([sizes, attempt(() => fs.openSync('more', 'wx')), attempt(() => fs.unlinkSync('t9')),
         attempt(() => fs.closeSync(fs.openSync('more', 'wx')))])`,
      mounted.path('inbox'),
    );
    expect(results).toEqual([['ok', 'EFBIG', 'EFBIG', 'ok'], 'ENOSPC', 'ok', 'ok']);
    expect(await readdir(mounted.path('inbox'))).toHaveLength(4096);
  });

  it('MT-21 keeps removed and replaced files usable through open handles, then deletes them', async () => {
    await using mounted = await withInbox();
    const results = await client<unknown[]>(
      `process.chdir(args[0]);
       const gone = fs.openSync('gone', 'w+'), replaced = fs.openSync('replaced', 'w+');
       fs.writeSync(gone, 'a'); fs.writeSync(replaced, 'b');
       fs.unlinkSync('gone');
       fs.writeFileSync('new', 'c'); fs.renameSync('new', 'replaced');
       fs.writeSync(gone, 'A', 1); fs.writeSync(replaced, 'B', 1);
       const read = (fd) => { const b = Buffer.alloc(9); return b.toString('utf8', 0, fs.readSync(fd, b, 0, 9, 0)); };
       print([read(gone), read(replaced), fs.fstatSync(gone).nlink, fs.readFileSync('replaced', 'utf8'), fs.readdirSync('.')])`,
      mounted.path('inbox'),
    );
    expect(results).toEqual(['aA', 'bB', 0, 'c', ['replaced']]);
    await until(async () => (await readdir(mounted.backing('in.graveyard'))).length === 0, 'the graveyard is empty');
  });

  it('MT-22 takes over the files that are in the backing directory, with the same inode numbers', async () => {
    await using mounted = await Mounted.start();
    await mkdir(mounted.backing('in'));
    await mkdir(mounted.backing('in.graveyard'));
    await writeFile(mounted.backing('in', '.half.tmp'), 'half');
    await writeFile(mounted.backing('in', 'old.req.json'), '{}');
    await writeFile(mounted.backing('in.graveyard', '77'), 'left by a killed process');
    mounted.publishInbox();
    expect((await readdir(mounted.path('inbox'))).sort()).toEqual(['.half.tmp', 'old.req.json']);
    expect(await readdir(mounted.backing('in.graveyard'))).toEqual([]);
    const real = await stat(mounted.backing('in', '.half.tmp'), { bigint: true });
    const shown = await stat(mounted.path('inbox', '.half.tmp'), { bigint: true });
    expect(BigInt.asUintN(64, shown.ino)).toBe(real.ino | (1n << 63n));
    expect(await sh('cd "$1"; echo more >> .half.tmp; echo x >> old.req.json', mounted.path('inbox'))).toMatchObject({
      code: 2,
    });
    expect(await readFile(mounted.backing('in', '.half.tmp'), 'utf8')).toBe('halfmore\n');
  });

  it('MT-23 puts fsync of an inbox and of its files to JavaScript, and answers others at once', async () => {
    await using mounted = await withInbox();
    const results = await client<string[]>(
      `process.chdir(args[0]);
       const sync = (path, flags) => attempt(() => { const fd = fs.openSync(path, flags); fs.fsyncSync(fd); fs.closeSync(fd); });
       print([sync('inbox', 'r'), sync('inbox/t', 'w'), sync('.', 'r')])`,
      mounted.path(),
    );
    expect(results).toEqual(['ok', 'ok', 'ok']);
    expect(mounted.requests.map((request) => [request.op, request.op === 'fsync' && request.inbox])).toEqual([
      ['fsync', 512],
      ['fsync', 512],
    ]);
  });
});
