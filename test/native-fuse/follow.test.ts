import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { base, client, directory, Mounted, put, sh, start, startClient } from './mounted.js';

const ROW = 2 ** 38;
const INODE = 256;

/** A mount with `rows`, and the backing file to which rows are added as a daemon does. */
class Followed implements AsyncDisposable {
  readonly mounted: Mounted;
  readonly backing: string;
  readonly path: string;

  private constructor(mounted: Mounted) {
    this.mounted = mounted;
    this.backing = mounted.backing('rows.jsonl');
    this.path = mounted.path('d', 'rows');
    writeFileSync(this.backing, '');
    const node = { ...base(INODE, 0o444), kind: 'follow' as const, path: this.backing };
    mounted.session.publish([put(1, 'd', directory(255)), put(255, 'rows', node)]);
  }

  static async start(): Promise<Followed> {
    return new Followed(await Mounted.start());
  }

  add(text: string): void {
    appendFileSync(this.backing, text);
    this.mounted.session.publish([{ op: 'grow', inode: INODE }]);
  }

  /** Waits until somebody waits for the next row. */
  async untilWaiting(): Promise<void> {
    await until(() => this.mounted.session.stats().following > 0, 'somebody waits');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.mounted[Symbol.asyncDispose]();
  }
}

/** A program whose output is collected. */
class Client implements Disposable {
  text = '';
  readonly #child;

  constructor(program: string, ...args: string[]) {
    // What a sanitizer run loads into this process is not for everybody: dd does not bear it.
    const { LD_PRELOAD: _, ...env } = process.env;
    this.#child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], env });
    this.#child.stdout.setEncoding('utf8').on('data', (part: string) => {
      this.text += part;
    });
    this.ended = new Promise((resolve) => this.#child.once('close', (code, signal) => resolve(code ?? signal)));
  }

  readonly ended: Promise<number | string | null>;

  async has(text: string): Promise<void> {
    await until(() => this.text.length >= text.length, `${text.length} bytes are read`);
    expect(this.text).toBe(text);
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}

const place = mkdtempSync(join(tmpdir(), 'follow-'));
const waiter = join(place, 'waiter');
beforeAll(() => {
  execFileSync('cc', ['-O1', '-o', waiter, join(import.meta.dirname, 'fixtures/waiter.c')]);
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

describe('a file that is followed', () => {
  it('MT-60 gives each row as it comes, once, to every reader', async () => {
    await using followed = await Followed.start();
    followed.add('{"seq":1}\n');
    using first = new Client('/bin/cat', followed.path);
    await first.has('{"seq":1}\n');
    using second = new Client('/bin/cat', followed.path);
    let all = '{"seq":1}\n';
    for (let seq = 2; seq <= 300; seq += 1) {
      followed.add(`{"seq":${seq}}\n`);
      all += `{"seq":${seq}}\n`;
      if (seq % 60 === 0) await first.has(all);
    }
    await first.has(all);
    await second.has(all);
  });

  it('MT-60 shows no size, cannot be written, and says EAGAIN to who does not wait', async () => {
    await using followed = await Followed.start();
    followed.add('one\n');
    const script = `const at = (n) => { try { const b = Buffer.alloc(9); return b.toString('utf8', 0, fs.readSync(fd, b, 0, 9, n)); } catch (e) { return e.code; } };
      const fd = fs.openSync(args[0], fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
      print([fs.statSync(args[0]).size, at(0), at(4), at(2), attempt(() => fs.openSync(args[0], 'r+')), attempt(() => fs.truncateSync(args[0]))])`;
    const refusal = process.getuid?.() === 0 ? 'EROFS' : 'EACCES';
    expect(await client(script, followed.path)).toEqual([0, 'one\n', 'EAGAIN', 'e\n', refusal, refusal]);
  });

  it('MT-61 begins at the row that an offset names, also one that is not there yet', async () => {
    await using followed = await Followed.start();
    followed.add('one\ntwo\nthree\n');
    const fd = openSync(followed.path, 'r');
    const read = (position: number, size = 64): string => {
      const buffer = Buffer.alloc(size);
      return buffer.toString('utf8', 0, readSync(fd, buffer, 0, size, position));
    };
    try {
      expect(read(0)).toBe('one\ntwo\nthree\n');
      expect(read(ROW)).toBe('one\ntwo\nthree\n');
      expect(read(2 * ROW)).toBe('two\nthree\n');
      expect(read(2 * ROW + 4)).toBe('three\n');
      expect(read(3 * ROW, 3)).toBe('thr');
    } finally {
      closeSync(fd);
    }
    const from = (row: number): string[] => [`if=${followed.path}`, 'bs=64', `skip=${row * ROW}`, 'iflag=skip_bytes'];
    using late = new Client('/bin/dd', ...from(5), 'count=1', 'status=none');
    await followed.untilWaiting();
    followed.add('four\n');
    followed.add('five\nsix\n');
    await late.has('five\nsix\n');
    expect(await late.ended).toBe(0);
  });

  it('MT-61 finds rows beyond any one block of the file', async () => {
    await using followed = await Followed.start();
    const row = (n: number): string => `${String(n).padStart(9, '0')}${'x'.repeat(n % 400)}\n`;
    followed.add(Array.from({ length: 5000 }, (_, n) => row(n + 1)).join(''));
    const script = `const fd = fs.openSync(args[0]); const b = Buffer.alloc(9);
      print([1, 2, 327, 328, 4999, 5000].map((n) => { fs.readSync(fd, b, 0, 9, n * 2 ** 38); return Number(b.toString()); }))`;
    expect(await client(script, followed.path)).toEqual([1, 2, 327, 328, 4999, 5000]);
  });

  it.each(['poll', 'select', 'epoll'])('MT-62 wakes who waits by %s', async (how) => {
    await using followed = await Followed.start();
    followed.add('one\n');
    const child = spawn(waiter, [how, followed.path], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    try {
      await until(() => text === 'one\nwaiting\n', 'it waits');
      followed.add('two\n');
      await until(() => text === 'one\nwaiting\nready\ntwo\nwaiting\n', 'it waits again');
      followed.add('three\n');
      expect(await ended).toBe(0);
      expect(text).toBe('one\nwaiting\nready\ntwo\nwaiting\nready\nthree\n');
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('MT-62 any other file is always ready', async () => {
    await using followed = await Followed.start();
    const node = { ...base(300, 0o444), kind: 'bytes' as const, bytes: Buffer.from('x') };
    followed.mounted.session.publish([put(1, 'plain', node)]);
    const child = start(waiter, ['poll', followed.mounted.path('plain')]);
    // It reads to the end of the file and says so: a regular file has one.
    expect(await child.outcome).toMatchObject({ code: 3, stdout: 'x' });
  });

  it('MT-63 a signal ends a read that waits', async () => {
    await using followed = await Followed.start();
    const reader = startClient(`fs.writeSync(1, '"asks"'); fs.readFileSync(args[0])`, followed.path);
    await followed.untilWaiting();
    reader.kill('SIGKILL');
    expect(await reader.outcome).toMatchObject({ signal: 'SIGKILL' });
    followed.add('later\n');
    using cat = new Client('/bin/cat', followed.path);
    await cat.has('later\n');
  });

  it('MT-63 readers are at the end when the file or its directory goes', async () => {
    await using followed = await Followed.start();
    followed.add('one\n');
    using cat = new Client('/bin/cat', followed.path);
    await cat.has('one\n');
    followed.mounted.session.publish([{ op: 'remove', parent: 1, name: 'd' }]);
    expect(await cat.ended).toBe(0);
  });

  it('MT-63 readers get an error when the mount ends', async () => {
    const followed = await Followed.start();
    let stopped = false;
    try {
      followed.add('one\n');
      const reader = sh('cat "$1"', followed.path);
      await followed.untilWaiting();
      await followed.mounted.session.stop();
      stopped = true;
      const { code, stderr } = await reader;
      expect([code, stderr]).toEqual([1, expect.stringMatching(/cat: .*: /)]);
    } finally {
      expect(stopped).toBe(true);
      await followed[Symbol.asyncDispose]();
    }
  });

  it('MT-64 a read for much more than there is does not wait for the rest, whatever the size of a part', async () => {
    await using followed = await Followed.start();
    followed.add('x'.repeat(128 * 1024));
    const script = `const fd = fs.openSync(args[0]); const b = Buffer.alloc(1 << 20);
      const sizes = []; let at = 0;
      while (at < 128 * 1024) { const n = fs.readSync(fd, b, 0, b.length, at); sizes.push(n); at += n; }
      print([at, b.subarray(0, 1).toString()])`;
    expect(await client(script, followed.path)).toEqual([128 * 1024, 'x']);
    followed.add('y'.repeat(300 * 1024));
    const more = `const fd = fs.openSync(args[0]); const b = Buffer.alloc(1 << 20); let at = 0; let reads = 0;
      while (at < 428 * 1024) { at += fs.readSync(fd, b, 0, b.length, at); reads += 1; }
      print([at, reads < 4])`;
    expect(await client(more, followed.path)).toEqual([428 * 1024, true]);
  });

  it('MT-60 MT-64 loses and doubles nothing while rows come in a hurry', async () => {
    await using followed = await Followed.start();
    using cat = new Client('/bin/cat', followed.path);
    let all = '';
    for (let round = 0; round < 400; round += 1) {
      const text = Array.from(
        { length: (round % 37) + 1 },
        (_, n) => `${round}.${n} ${'z'.repeat((round * 13) % 997)}\n`,
      );
      followed.add(text.join(''));
      all += text.join('');
      if (round % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await cat.has(all);
    expect(readFileSync(followed.backing, 'utf8')).toBe(all);
  });
});
