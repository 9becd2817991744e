import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { bytes, client, control, directory, Mounted, put, sh, startClient } from './mounted.js';

const { EACCES, EDEADLK, EINVAL } = constants.errno;

describe('requests that only JavaScript can answer', () => {
  it('MT-24 makes a directory when JavaScript published it, and gives back the errno otherwise', async () => {
    await using mounted = await Mounted.start();
    mounted.decide = (request) => {
      if (request.op !== 'mkdir' || request.name === 'refused') return EACCES;
      if (request.name === 'good')
        mounted.session.publish([put(1, 'good', directory(256)), put(256, 'b', bytes(257, 'x'))]);
      return 0;
    };
    const script = `process.chdir(args[0]); process.umask(0);
      const make = (name) => attempt(() => fs.mkdirSync(name, 0o750));
      print([make('good'), make('refused'), make('forgotten'), make('good'), fs.readdirSync('.'), fs.readFileSync('good/b', 'utf8')])`;
    expect(await client<unknown[]>(script, mounted.path())).toEqual(['ok', 'EACCES', 'EIO', 'EEXIST', ['good'], 'x']);
    expect(mounted.requests[0]).toMatchObject({ op: 'mkdir', parent: 1, name: 'good', mode: 0o750 });
    expect(mounted.requests).toHaveLength(3);
  });

  it('MT-25 puts a control write to JavaScript as a whole and shows the new value to the writer', async () => {
    await using mounted = await Mounted.start();
    mounted.session.publish([put(1, 'model', control(256, 'a much longer old value\n'))]);
    mounted.decide = (request) => {
      if (request.op !== 'control') return EACCES;
      const text = Buffer.from(request.bytes).toString();
      if (text.includes('bad')) return EINVAL;
      mounted.session.publish([put(1, 'model', control(256, text))]);
      return 0;
    };
    const script = `process.chdir(args[0]);
      const write = (flags, text, at) => attempt(() => { const fd = fs.openSync('model', flags); try { fs.writeSync(fd, text, at); } finally { fs.closeSync(fd); } });
      const state = () => fs.readFileSync('model', 'utf8') + fs.statSync('model').size;
      print([write('w', 'new'), state(), write('w', 'bad'), state(), write('r+', 'x', 3), write('a', 'x'),
        write('w', 'y'.repeat(65536)), fs.statSync('model').size, write('w', 'y'.repeat(65537)), write('w', 'y'.repeat(1 << 20)),
        attempt(() => fs.truncateSync('model', 0)), attempt(() => fs.truncateSync('model', 1)), fs.statSync('model').size])`;
    expect(await client<unknown[]>(script, mounted.path())).toEqual([
      'ok',
      'new3',
      'EINVAL',
      'new3',
      'EINVAL',
      'EINVAL',
      'ok',
      65536,
      'EMSGSIZE',
      'EMSGSIZE',
      'ok',
      'EINVAL',
      65536,
    ]);
    expect((await sh('echo from a shell > "$1"; cat "$1"', mounted.path('model'))).stdout).toBe('from a shell\n');
  });

  it('MT-26 answers ETIMEDOUT at the deadline, tells JavaScript, and ignores the late answer', async () => {
    await using mounted = await Mounted.start({ deadlineMs: 100 });
    mounted.publishInbox();
    mounted.decide = () => undefined;
    const script = `process.chdir(args[0]); fs.writeFileSync('t', 'x');
      print([attempt(() => fs.renameSync('t', 'a.req.json')), fs.readdirSync('.'), attempt(() => fs.appendFileSync('t', 'y'))])`;
    expect(await client<unknown[]>(script, mounted.path('inbox'))).toEqual(['ETIMEDOUT', ['t'], 'ok']);
    const { token } = await mounted.request('handoff');
    await until(() => mounted.aborted.length > 0, 'the abort is told');
    expect(mounted.aborted).toEqual([token]);
    expect(mounted.session.answer(token, 0)).toBe(false);
  });

  it('MT-27 ends a request whose caller got a signal, and tells JavaScript', async () => {
    await using mounted = await Mounted.start();
    mounted.publishInbox();
    mounted.decide = () => undefined;
    const running = startClient(
      `fs.writeFileSync(args[0] + '/t', 'x'); fs.renameSync(args[0] + '/t', args[0] + '/a.req.json')`,
      mounted.path('inbox'),
    );
    const { token } = await mounted.request('handoff');
    running.kill('SIGKILL');
    expect(await running.outcome).toMatchObject({ signal: 'SIGKILL' });
    await until(() => mounted.aborted.length > 0, 'the abort is told');
    expect(mounted.aborted).toEqual([token]);
    expect(mounted.session.answer(token, 0)).toBe(false);
    mounted.decide = () => 0;
    expect(await sh('cd "$1"; echo y >> t; mv t a.req.json; ls', mounted.path('inbox'))).toMatchObject({
      stdout: 'a.req.json\n',
    });
  });

  it('MT-28 answers EDEADLK to its own process and EAGAIN above the bound', async () => {
    await using mounted = await Mounted.start({ maxPending: 1 });
    mounted.publishInbox();
    mounted.decide = (request) => (request.op === 'mkdir' ? undefined : 0);
    await expect(mkdir(mounted.path('own'))).rejects.toMatchObject({ errno: -EDEADLK });
    await writeFile(mounted.path('inbox', 't'), 'x');
    const renamed = rename(mounted.path('inbox', 't'), mounted.path('inbox', 'a.req.json'));
    await expect(renamed).rejects.toMatchObject({ errno: -EDEADLK });
    expect(await readFile(mounted.path('inbox', 't'), 'utf8')).toBe('x');
    expect(mounted.requests).toEqual([]);
    const waiting = sh('mkdir "$1"', mounted.path('waits'));
    const { token } = await mounted.request('mkdir');
    expect(await sh('cd "$1"; mv t a.req.json', mounted.path('inbox'))).toMatchObject({
      stderr: expect.stringContaining('temporarily unavailable'),
    });
    mounted.session.answer(token, EACCES);
    expect((await waiting).code).not.toBe(0);
  });

  it('MT-28 answers each of many requests at once, exactly once', async () => {
    await using mounted = await Mounted.start();
    mounted.publishInbox();
    const body = `process.chdir(args[0]);
      for (let i = 0; i < 250; i++) {
        const id = args[1] + '-' + i;
        fs.writeFileSync('.' + id, id);
        fs.renameSync('.' + id, id + '.req.json');
      }
      print('ok')`;
    const clients = Array.from({ length: 8 }, (_, i) => client<string>(body, mounted.path('inbox'), `c${i}`));
    expect(await Promise.all(clients)).toEqual(new Array(8).fill('ok'));
    expect(new Set(mounted.requests.map((request) => request.op === 'handoff' && request.name)).size).toBe(2000);
    expect(
      mounted.requests.every((request) => request.op === 'handoff' && `${request.bytes}.req.json` === request.name),
    ).toBe(true);
    expect(await readdir(mounted.backing('in'))).toHaveLength(2000);
    const consumed = mounted.requests.map((request) => ({
      op: 'consume' as const,
      parent: 512,
      name: request.op === 'handoff' ? request.name : '',
    }));
    mounted.session.publish(consumed);
    await until(async () => (await readdir(mounted.path('inbox'))).length === 0, 'all are consumed');
    await expect(stat(mounted.path('inbox', 'c0-0.req.json'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
