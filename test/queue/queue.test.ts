import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseRequest } from '../../src/contract/request.js';
import { Journal } from '../../src/durable/journal.js';
import { Serials } from '../../src/durable/serials.js';
import { Queue, type QueueOptions } from '../../src/queue/queue.js';
import { startProgram } from '../durable/support/program.js';
import { temporaryDirectory } from '../durable/support/temporary.js';

const caller = { uid: 1000, gid: 1001, pid: 42 };
const result = { outcome: 'success', cause: 'completed', stage: 'harness' } as const;

function acceptance(agent: string, id: string, prompt: string) {
  const bytes = Buffer.from(JSON.stringify({ prompt }));
  return { agent, id, bytes, request: parseRequest(bytes), caller };
}

class Opened implements AsyncDisposable {
  private constructor(
    readonly journal: Journal,
    readonly queue: Queue,
  ) {}

  static async at(directory: string, options?: QueueOptions): Promise<Opened> {
    const journal = await Journal.open(directory);
    const serials = Serials.open(directory);
    return new Opened(journal, await Queue.open(journal, () => serials.next(), options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.journal.close();
  }
}

function logs(directory: string): string[] {
  return readdirSync(join(directory, 'queue')).sort();
}

describe('queue', () => {
  it('SE-20 has every accepted request after kill -9', async () => {
    using temporary = temporaryDirectory();
    const accepted = new Map<string, number>();
    for (let round = 0; round < 5; round++) {
      const program = new URL('support/acceptor.mjs', import.meta.url).pathname;
      await using acceptor = startProgram(program, [temporary.path, String(round)]);
      await acceptor.printed(10 + Math.floor(Math.random() * 60));
      acceptor.child.kill('SIGKILL');
      await acceptor.ended;
      for (const line of acceptor.lines) {
        const [id = '', serial] = line.split(' ');
        accepted.set(id, Number(serial));
      }
    }
    await using opened = await Opened.at(temporary.path, { perAgent: 1_000_000 });
    const pending = opened.queue.pending();
    expect(new Set(pending.map((entry) => entry.serial)).size).toBe(pending.length);
    for (const [id, serial] of accepted) {
      const entry = opened.queue.get('main', id);
      expect(entry).toMatchObject({
        state: 'waiting',
        serial,
        accepted: { ...caller, request: { prompt: `do ${id}` } },
      });
    }
  });

  it('SE-21 replays the same content, tells its state, and refuses other content', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path);
    const { queue, journal } = opened;
    const first = queue.accept(acceptance('main', 'a', 'hello'));
    expect(first).toMatchObject({ kind: 'accepted', entry: { agent: 'main', id: 'a', ...caller } });
    expect(queue.accept(acceptance('main', 'a', 'hello'))).toMatchObject({
      kind: 'replay',
      entry: { state: 'waiting' },
    });
    expect(queue.accept(acceptance('other', 'a', 'bye'))).toMatchObject({ kind: 'accepted' });
    queue.start('main', 'a', { session: 's', run: 'r' });
    queue.finish('main', 'a', result);
    const records = journal.stats().records;
    const conflict = expect.objectContaining({ code: 'REQUEST_CONFLICT' });
    expect(() => queue.accept(acceptance('main', 'a', 'bye'))).toThrow(conflict);
    expect(queue.accept(acceptance('main', 'a', 'hello'))).toMatchObject({
      kind: 'replay',
      entry: { state: 'finished', digest: first.entry.digest, place: { session: 's', run: 'r' }, result },
    });
    expect(journal.stats().records).toBe(records);
    expect(() => queue.finish('main', 'a', result)).toThrow(expect.objectContaining({ code: 'INTERNAL' }));
    expect(() => queue.start('main', 'nobody', { session: 's', run: 'r' })).toThrow(/unknown/);
  });

  it('SE-22 limits what one agent has waiting or running', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path, { perAgent: 3 });
    const { queue } = opened;
    for (const id of ['a', 'b', 'c']) queue.accept(acceptance('main', id, id));
    queue.start('main', 'a', { session: 's', run: 'r' });
    const full = expect.objectContaining({ code: 'QUEUE_FULL', errno: 'EAGAIN' });
    expect(() => queue.accept(acceptance('main', 'd', 'd'))).toThrow(full);
    expect(queue.accept(acceptance('main', 'b', 'b')).kind).toBe('replay');
    expect(queue.accept(acceptance('other', 'd', 'd')).kind).toBe('accepted');
    queue.finish('main', 'a', result);
    expect(queue.accept(acceptance('main', 'd', 'd')).kind).toBe('accepted');
    expect(queue.open).toBe(4);
  });

  it('SE-23 keeps the order of acceptance and what is running across restarts', async () => {
    using temporary = temporaryDirectory();
    {
      await using opened = await Opened.at(temporary.path);
      for (const id of ['z', 'a', 'm', 'b']) opened.queue.accept(acceptance(id === 'm' ? 'other' : 'main', id, id));
      opened.queue.start('main', 'a', { session: 's1', run: 'r1' });
      opened.queue.start('main', 'b', { session: 's2', run: 'r2' });
      opened.queue.finish('main', 'b', result);
    }
    await using opened = await Opened.at(temporary.path);
    expect(opened.queue.pending().map((entry) => entry.id)).toEqual(['z', 'm']);
    expect(opened.queue.running()).toMatchObject([{ id: 'a', session: 's1', run: 'r1', request: { prompt: 'a' } }]);
    opened.queue.start('main', 'a', { session: 's1', run: 'r1' });
    opened.queue.finish('main', 'a', result);
    expect(opened.queue.running()).toEqual([]);
  });

  it('SE-24 SE-25 compacts to receipts without content and keeps what is open', async () => {
    using temporary = temporaryDirectory();
    const secret = 'x'.repeat(2000);
    {
      await using opened = await Opened.at(temporary.path);
      for (let i = 0; i < 200; i++) {
        opened.queue.accept(acceptance('main', `r${i}`, `${secret} ${i}`));
        if (i % 10 === 7) continue;
        opened.queue.start('main', `r${i}`, { session: 's', run: `run${i}` });
        if (i % 10 !== 8) opened.queue.finish('main', `r${i}`, result);
      }
      expect(opened.queue.get('main', 'r0')).not.toHaveProperty('accepted');
    }
    const before = statSync(join(temporary.path, 'queue', 'log.0.jsonl')).size;
    await using opened = await Opened.at(temporary.path, { compactBytes: 100_000 });
    await opened.journal.durable();
    expect(logs(temporary.path)).toEqual(['log.1.jsonl']);
    expect(statSync(join(temporary.path, 'queue', 'log.1.jsonl')).size).toBeLessThan(before / 2);
    await opened.journal.close();

    await using again = await Opened.at(temporary.path);
    expect(again.queue.accept(acceptance('main', 'r5', `${secret} 5`))).toMatchObject({
      kind: 'replay',
      entry: { state: 'finished', place: { session: 's', run: 'run5' }, result },
    });
    expect(() => again.queue.accept(acceptance('main', 'r5', 'other'))).toThrow(/other content/);
    expect(again.queue.pending().map((entry) => entry.id)).toEqual(
      Array.from({ length: 20 }, (_, i) => `r${i * 10 + 7}`),
    );
    expect(again.queue.running().map((entry) => entry.run)).toEqual(
      Array.from({ length: 20 }, (_, i) => `run${i * 10 + 8}`),
    );
  });

  it('SE-24 loses nothing when a crash cuts off a compaction anywhere', async () => {
    using temporary = temporaryDirectory();
    const live = join(temporary.path, 'live');
    mkdirSync(live);
    {
      await using opened = await Opened.at(live);
      for (let i = 0; i < 20; i++) opened.queue.accept(acceptance('main', `r${i}`, `prompt ${i}`));
      opened.queue.start('main', 'r3', { session: 's', run: 'run' });
      opened.queue.finish('main', 'r3', result);
    }
    // A crash in the middle: both logs are there and the new one ends anywhere.
    const compacted = join(temporary.path, 'compacted');
    cpSync(live, compacted, { recursive: true });
    await (await Opened.at(compacted, { compactBytes: 0 })).journal.close();
    const whole = readFileSync(join(compacted, 'queue', 'log.1.jsonl'));
    const ends = [...whole.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []));
    for (const end of [0, ...ends]) {
      const image = join(temporary.path, `image-${end}`);
      cpSync(live, image, { recursive: true });
      cpSync(join(compacted, 'queue', 'log.1.jsonl'), join(image, 'queue', 'log.1.jsonl'));
      truncateSync(join(image, 'queue', 'log.1.jsonl'), end);
      await using opened = await Opened.at(image);
      expect(opened.queue.pending()).toHaveLength(19);
      expect(opened.queue.get('main', 'r3')).toMatchObject({ state: 'finished', result });
      opened.queue.accept(acceptance('main', 'next', 'next'));
      await opened.journal.durable();
      expect(logs(image)).toEqual([end === whole.length ? 'log.1.jsonl' : 'log.0.jsonl']);
    }
  });

  it('SE-23 refuses a log whose rows do not follow from each other', async () => {
    using temporary = temporaryDirectory();
    const journal = await Journal.open(temporary.path);
    journal.append('queue/log.0.jsonl', '{"type":"finished","agent":"main","id":"x","result":{}}\n');
    await journal.close();
    await expect(Opened.at(temporary.path)).rejects.toMatchObject({ code: 'STATE_CORRUPT' });
  });
});
