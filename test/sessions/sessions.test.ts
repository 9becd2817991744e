import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { EventRow } from '../../src/contract/events.js';
import type { Terminal } from '../../src/contract/terminal.js';
import { UNKNOWN_USAGE } from '../../src/contract/terminal.js';
import { Journal } from '../../src/durable/journal.js';
import { readRows } from '../../src/durable/rows.js';
import { Serials } from '../../src/durable/serials.js';
import { MAX_ROW_BYTES, type Session } from '../../src/sessions/session.js';
import { SessionStore } from '../../src/sessions/session-store.js';
import { collect } from '../durable/support/collect.js';
import { temporaryDirectory } from '../durable/support/temporary.js';

class Opened implements AsyncDisposable {
  private constructor(
    readonly journal: Journal,
    readonly store: SessionStore,
  ) {}

  static async at(directory: string, maxIdle?: number): Promise<Opened> {
    const journal = await Journal.open(directory);
    const serials = Serials.open(directory);
    return new Opened(
      journal,
      new SessionStore(journal, () => serials.next(), maxIdle === undefined ? {} : { maxIdle }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.journal.close();
  }
}

const terminal: Terminal = {
  outcome: 'success',
  cause: 'completed',
  stage: 'harness',
  text: 'done',
  usage: UNKNOWN_USAGE,
  cost: { usd: null, source: 'unknown' },
  durationMs: 1,
};

const file = (session: Session, name: string) => join(session.directory, name);
const rowsOf = async (session: Session, name: string) => (await collect(readRows(file(session, name)))) as EventRow[];
const sequence = (length: number) => Array.from({ length }, (_, i) => i + 1);

describe('sessions', () => {
  it('SE-39 makes a directory of readable files', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path);
    const session = await opened.store.open('main', 'talk');
    await session.durable();
    expect(readdirSync(session.directory).sort()).toEqual(['events.jsonl', 'messages.jsonl', 'meta.json']);
    session.setCwd('/srv/project');
    session.appendMessage('r1', 'user', 'hello?');
    session.appendMessage('r1', 'assistant', 'hello!');
    session.writeRoute('r1', '{}\n');
    await session.durable();
    expect(readFileSync(file(session, 'cwd'), 'utf8')).toBe('/srv/project\n');
    expect(readFileSync(file(session, 'latest.md'), 'utf8')).toBe('hello!\n');
    expect(readFileSync(file(session, 'runs/r1/route.json'), 'utf8')).toBe('{}\n');
    expect(JSON.parse(readFileSync(file(session, 'meta.json'), 'utf8'))).toEqual({
      schema: 'bridle.session/v1',
      agent: 'main',
      name: 'talk',
      serial: session.serial,
      created: session.created,
    });
    const unnamed = await opened.store.open('main');
    expect(unnamed.name).not.toBe((await opened.store.open('main')).name);
    for (const name of ['../x', '', 'a/b', '.hidden']) {
      await expect(opened.store.open('main', name)).rejects.toMatchObject({ code: 'INTERNAL' });
    }
  });

  it('SE-30 numbers rows without a gap, 16 sessions at once and across restarts', async () => {
    using temporary = temporaryDirectory();
    for (let start = 0; start < 3; start++) {
      await using opened = await Opened.at(temporary.path);
      const write = async (name: string) => {
        const session = await opened.store.open('main', name);
        for (let i = 0; i < 20; i++) {
          session.appendEvent('r', { type: 'text', text: `${name} ${i}` });
          if (i % 2 === 0) session.appendMessage('r', 'user', 'x');
          if (i % 5 === 0) await session.durable();
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, i) => write(`s${i}`)));
    }
    await using opened = await Opened.at(temporary.path);
    for (let i = 0; i < 16; i++) {
      const session = await opened.store.open('main', `s${i}`);
      expect((await rowsOf(session, 'events.jsonl')).map((row) => row.seq)).toEqual(sequence(60));
      expect((await rowsOf(session, 'messages.jsonl')).map((row) => row.seq)).toEqual(sequence(30));
    }
  });

  it('SE-31 puts the same rows in copies', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path);
    const session = await opened.store.open('main', 's');
    session.appendEvent('r0', { type: 'progress', message: 'before' });
    for (const run of ['r1', 'r2']) {
      for (let i = 0; i < 10; i++) {
        session.appendEvent(run, { type: 'text', text: `${i}` }, [`agents/main/outbox/${run}.events.jsonl`]);
      }
    }
    await session.durable();
    const read = (target: string) => readFileSync(opened.journal.path(target), 'utf8');
    const [first = '', ...rest] = readFileSync(file(session, 'events.jsonl'), 'utf8').split(/(?<=\n)/);
    expect(first).toContain('before');
    const copies = read('agents/main/outbox/r1.events.jsonl') + read('agents/main/outbox/r2.events.jsonl');
    expect(copies).toBe(rest.join(''));
  });

  it('SE-32 gives the session to one run at a time, in order', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path);
    const session = await opened.store.open('main', 's');
    const order: string[] = [];
    const impatient = new AbortController();
    const take = async (run: string, signal?: AbortSignal) => {
      await session.acquire(run, signal);
      order.push(run);
    };
    await take('a');
    const waiting = [take('b'), expect(take('c', impatient.signal)).rejects.toThrow('gave up'), take('d')];
    await expect(session.acquire('b')).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(() => session.release('b')).toThrow(expect.objectContaining({ code: 'INTERNAL' }));
    impatient.abort(new Error('gave up'));
    expect(order).toEqual(['a']);
    session.release('a');
    await waiting[0];
    expect(order).toEqual(['a', 'b']);
    session.release('b');
    await Promise.all(waiting);
    expect(order).toEqual(['a', 'b', 'd']);
    session.release('d');
    expect(session.idle).toBe(true);
  });

  it('SE-33 gives the newest whole messages within the limits', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path);
    const many = await opened.store.open('main', 'many');
    expect(await many.history()).toEqual([]);
    for (let i = 0; i < 250; i++) many.appendMessage('r', i % 2 === 0 ? 'user' : 'assistant', `${i}`);
    const history = await many.history();
    expect(history).toHaveLength(200);
    expect(history[0]).toEqual({ role: 'user', content: '50' });
    expect(history.at(-1)).toEqual({ role: 'assistant', content: '249' });
    const large = await opened.store.open('main', 'large');
    for (let i = 0; i < 5; i++) large.appendMessage('r', 'user', `${i}`.repeat(400_000));
    expect((await large.history()).map((message) => message.content[0])).toEqual(['3', '4']);
  });

  it('SE-34 tells a run with a terminal row from one without', async () => {
    using temporary = temporaryDirectory();
    {
      await using opened = await Opened.at(temporary.path);
      const session = await opened.store.open('main', 's');
      session.appendEvent('r1', { type: 'run.terminal', terminal });
      session.appendEvent('r2', { type: 'text', text: 'x' });
      for (let i = 0; i < 3000; i++) session.appendEvent('r3', { type: 'text', text: `${i}`.repeat(20) });
      session.appendEvent('r3', { type: 'run.terminal', terminal: { ...terminal, text: 'newest' } });
    }
    await using opened = await Opened.at(temporary.path);
    const session = await opened.store.open('main', 's');
    expect(await session.terminalOf('r1')).toMatchObject({ ts: expect.any(String), terminal: { text: 'done' } });
    expect(await session.terminalOf('r2')).toBeUndefined();
    expect(await session.terminalOf('r3')).toMatchObject({ terminal: { text: 'newest' } });
    expect(await session.terminalOf('r4')).toBeUndefined();
    session.appendEvent('r4', { type: 'run.terminal', terminal });
    expect(await session.terminalOf('r4')).toBeDefined();
  });

  it('SE-35 makes a removed index anew', async () => {
    using temporary = temporaryDirectory();
    let before: readonly unknown[] = [];
    {
      await using opened = await Opened.at(temporary.path);
      for (const name of ['z', 'a', 'index.jsonl', 'm']) await opened.store.open('main', name);
      before = await opened.store.list('main');
      expect(before).toMatchObject([{ name: 'z' }, { name: 'a' }, { name: 'index.jsonl' }, { name: 'm' }]);
    }
    rmSync(join(temporary.path, 'agents/main/sessions.jsonl'));
    mkdirSync(join(temporary.path, 'agents/main/sessions/half-made'));
    {
      await using opened = await Opened.at(temporary.path);
      expect(await opened.store.list('main')).toEqual(before);
      expect(await opened.store.list('nobody')).toEqual([]);
    }
    await using opened = await Opened.at(temporary.path);
    expect(await opened.store.list('main')).toEqual(before);
  });

  it('SE-35 knows a session that the index lacks by its own files', async () => {
    using temporary = temporaryDirectory();
    const index = join(temporary.path, 'agents/main/sessions.jsonl');
    let before: readonly unknown[] = [];
    {
      await using opened = await Opened.at(temporary.path);
      for (const name of ['a', 'b'])
        (await opened.store.open('main', name)).appendEvent('r', { type: 'text', text: 'x' });
      before = await opened.store.list('main');
    }
    writeFileSync(index, readFileSync(index, 'utf8').replace(/.*\n$/, ''));
    await using opened = await Opened.at(temporary.path);
    expect(await opened.store.list('main')).toEqual(before.slice(0, 1));
    const session = await opened.store.open('main', 'b');
    expect(session.appendEvent('r', { type: 'text', text: 'y' }).seq).toBe(2);
    expect(await opened.store.list('main')).toEqual(before);
  });

  it('SE-36 refuses a damaged session and goes on with the others', async () => {
    using temporary = temporaryDirectory();
    {
      await using opened = await Opened.at(temporary.path);
      for (const name of ['good', 'bad'])
        (await opened.store.open('main', name)).appendEvent('r', { type: 'text', text: 'x' });
    }
    writeFileSync(join(temporary.path, 'agents/main/sessions/bad/events.jsonl'), '{"seq":1,"torn', { flag: 'a' });
    await using opened = await Opened.at(temporary.path);
    const corrupt = { code: 'STATE_CORRUPT', message: expect.stringContaining('bad/events.jsonl') };
    await expect(opened.store.open('main', 'bad')).rejects.toMatchObject(corrupt);
    await expect(opened.store.open('main', 'bad')).rejects.toMatchObject(corrupt);
    const good = await opened.store.open('main', 'good');
    expect(good.appendEvent('r', { type: 'text', text: 'y' }).seq).toBe(2);
  });

  it('SE-37 keeps any content exactly, up to 16 MiB a row', async () => {
    using temporary = temporaryDirectory();
    const contents = [
      '',
      '\0',
      '\ud800 lone',
      '\u{1f600}'.repeat(30_000),
      'line\nbreak\r\n',
      'x'.repeat(MAX_ROW_BYTES - 200),
    ];
    {
      await using opened = await Opened.at(temporary.path);
      const session = await opened.store.open('main', 's');
      for (const text of contents) session.appendEvent('r', { type: 'text', text });
      expect(() => session.appendEvent('r', { type: 'text', text: 'x'.repeat(MAX_ROW_BYTES) })).toThrow(
        /more than 16777216/,
      );
      expect(() => session.appendMessage('r', 'user', 'ä'.repeat(MAX_ROW_BYTES / 2))).toThrow(/more than 16777216/);
      expect(session.appendEvent('r', { type: 'text', text: 'after' }).seq).toBe(contents.length + 1);
    }
    await using opened = await Opened.at(temporary.path);
    const session = await opened.store.open('main', 's');
    const rows = await rowsOf(session, 'events.jsonl');
    expect(rows.map((row) => row.seq)).toEqual(sequence(contents.length + 1));
    const texts = rows.map((row) => (row.type === 'text' ? row.text : ''));
    expect(texts.every((text, i) => text === [...contents, 'after'][i])).toBe(true);
  });

  it('SE-38 has one object for a session, also when idle ones are dropped', async () => {
    using temporary = temporaryDirectory();
    await using opened = await Opened.at(temporary.path, 2);
    const [held, same] = await Promise.all([opened.store.open('main', 'held'), opened.store.open('main', 'held')]);
    expect(held).toBe(same);
    held.appendEvent('r', { type: 'text', text: '1' });
    for (let i = 0; i < 6; i++)
      (await opened.store.open('main', `s${i}`)).appendEvent('r', { type: 'text', text: 'x' });
    expect(await opened.store.open('main', 'held')).toBe(held);
    for (let i = 0; i < 6; i++) {
      const session = await opened.store.open('main', `s${i}`);
      expect(session.appendEvent('r', { type: 'text', text: 'y' }).seq).toBe(2);
    }
    expect(await opened.store.list('main')).toHaveLength(7);
  });
});
