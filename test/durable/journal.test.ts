import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Journal } from '../../src/durable/journal.js';
import { until } from '../support/until.js';
import { startProgram } from './support/program.js';
import { temporaryDirectory } from './support/temporary.js';

const text = (journal: Journal, target: string) => readFileSync(journal.path(target), 'utf8');

function segments(directory: string): string[] {
  return readdirSync(join(directory, 'journal')).filter((name) => name.endsWith('.log'));
}

describe('journal', () => {
  it('SE-04 tells offset and size at once and shows bytes only when they are durable', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    expect(journal.append('a/log', 'one\n', { now: true })).toBe(0);
    expect(journal.append('a/log', Buffer.from('zwölf\n'))).toBe(4);
    expect(journal.size('a/log')).toBe(11);
    expect(journal.size('a/none')).toBe(0);
    expect(existsSync(journal.path('a/log'))).toBe(false);
    await journal.durable();
    expect(text(journal, 'a/log')).toBe('one\nzwölf\n');
    expect(journal.size('a/log')).toBe(11);
    journal.put('a/log', 'x');
    expect(journal.append('a/log', 'y')).toBe(1);
    journal.remove('a/log');
    expect(journal.append('a/log', 'z')).toBe(0);
    expect(text(journal, 'a/log')).toBe('one\nzwölf\n');
  });

  it('SE-05 makes the targets what the calls say, and says which changed before anybody goes on', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    const told: string[][] = [];
    const end = journal.onApplied((targets) => told.push([...targets].sort()));
    journal.append('log', 'a');
    journal.put('state', 'active');
    journal.append('log', 'b');
    journal.put('state', 'idle');
    journal.append('gone', 'x');
    journal.remove('gone');
    journal.remove('never/was');
    await journal.durable();
    expect(told).toEqual([['gone', 'log', 'never/was', 'state']]);
    expect(text(journal, 'log')).toBe('ab');
    expect(text(journal, 'state')).toBe('idle');
    expect(existsSync(journal.path('gone'))).toBe(false);
    await journal.durable();
    end();
    journal.append('log', 'c');
    await journal.durable();
    expect(told).toHaveLength(1);
  });

  it('SE-43 has on disk what was synced, also in the journal alone', async () => {
    using temporary = temporaryDirectory();
    using copy = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    const shown: boolean[] = [];
    const end = journal.onApplied(() => shown.push(true));
    journal.put('leases/a.json', 'first');
    const synced = journal.synced().then(() => shown.push(false));
    await synced;
    // The waiter went on before the targets were written.
    expect(shown[0]).toBe(false);
    cpSync(join(temporary.path, 'journal'), join(copy.path, 'journal'), { recursive: true });
    await journal.durable();
    end();
    await journal.synced();
    await using other = await Journal.open(copy.path);
    expect(text(other, 'leases/a.json')).toBe('first');
  });

  it('SE-05 does not keep what the caller does to its buffer later', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    const bytes = Buffer.from('before');
    journal.append('log', bytes);
    bytes.fill('x');
    await journal.durable();
    expect(text(journal, 'log')).toBe('before');
  });

  it('SE-07 serves concurrent writers with few fdatasyncs', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    const writer = async (id: number) => {
      for (let i = 0; i < 50; i++) {
        journal.append(`log.${id}`, `${i}\n`);
        await journal.durable();
        expect(text(journal, `log.${id}`).endsWith(`${i}\n`)).toBe(true);
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, id) => writer(id)));
    const { records, fdatasyncs, batches } = journal.stats();
    expect(records).toBe(800);
    expect(fdatasyncs).toBe(batches);
    expect(fdatasyncs).toBeLessThan(records / 4);
  });

  it('SE-13 goes on in new segments, deletes old ones, and leaves one without records', async () => {
    using temporary = temporaryDirectory();
    const journal = await Journal.open(temporary.path, { segmentBytes: 4096 });
    let expected = '';
    for (let i = 0; i < 400; i++) {
      const row = `${i} ${'x'.repeat(i % 300)}\n`;
      expected += row;
      journal.append(`many/${i}`, row);
      journal.append('all', row, { now: i % 3 === 0 });
      if (i % 7 === 0) await journal.durable();
    }
    await journal.durable();
    await until(() => journal.stats().segments <= 2, 'full segments are deleted');
    expect(journal.stats().rotations).toBeGreaterThan(5);
    await journal.close();
    expect(segments(temporary.path)).toHaveLength(1);
    await using again = await Journal.open(temporary.path);
    expect(again.recovered).toEqual({ replayed: 0, torn: [], trimmed: [] });
    expect(text(again, 'all')).toBe(expected);
    expect(text(again, 'many/399')).toBe(`399 ${'x'.repeat(99)}\n`);
  });

  it('SE-13 refuses calls after the close and makes durable what came before', async () => {
    using temporary = temporaryDirectory();
    const journal = await Journal.open(temporary.path);
    journal.append('log', 'last');
    const closing = journal.close();
    expect(() => journal.append('log', 'x')).toThrow(expect.objectContaining({ code: 'SHUTTING_DOWN' }));
    await Promise.all([closing, journal.close()]);
    expect(text(journal, 'log')).toBe('last');
  });

  it('SE-14 acknowledges nothing after a write that failed, and the next start has all that was acknowledged', async () => {
    using temporary = temporaryDirectory();
    // 2 MiB a file: a real EFBIG from the kernel in the middle of a segment that may grow to 32 MiB.
    await using writer = startProgram('writer.mjs', [temporary.path, '9000', '33554432'], 4096);
    const { code } = await writer.ended;
    expect(code).toBe(0);
    expect(writer.lines.slice(-2)).toEqual(['failed STATE_UNWRITABLE true', 'again STATE_UNWRITABLE']);
    const accepted = writer.lines.filter((line) => line.startsWith('now ')).length;
    expect(accepted).toBeGreaterThan(20);
    await using journal = await Journal.open(temporary.path);
    expect(journal.size('count') / 16).toBeGreaterThanOrEqual(accepted);
    expect(journal.size('count') / 16).toBeLessThanOrEqual(accepted + 1);
  });

  it('SE-15 refuses targets outside, hidden by encoding, or of its own', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    const long = 'x'.repeat(256);
    const bad = [
      '',
      '/etc/passwd',
      '../x',
      'a/../../x',
      'a//b',
      './a',
      'a/.',
      'a\nb',
      'a\0b',
      'ä',
      'a"b',
      'a\\b',
      long,
    ];
    for (const target of [...bad, 'journal/1.log', 'lock', 'id', 'serials', 'x/'.repeat(600)]) {
      for (const act of ['append', 'put'] as const) {
        expect(() => journal[act](target, 'x'), target).toThrow(expect.objectContaining({ code: 'INTERNAL' }));
      }
      expect(() => journal.remove(target), target).toThrow(expect.objectContaining({ code: 'INTERNAL' }));
    }
    expect(journal.stats().records).toBe(0);
    journal.put('a b/...c+d=e@f', 'fine');
    await journal.durable();
    expect(text(journal, 'a b/...c+d=e@f')).toBe('fine');
  });

  it('SE-15 refuses a payload of more than 32 MiB and goes on', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    expect(() => journal.append('log', Buffer.alloc(32 * 1024 * 1024 + 1))).toThrow(/too long/);
    expect(journal.append('log', 'x')).toBe(0);
  });

  it('SE-16 appends the same bytes to several targets', async () => {
    using temporary = temporaryDirectory();
    await using journal = await Journal.open(temporary.path);
    journal.append('b', 'before\n');
    expect(journal.append(['a', 'b', 'c'], 'row\n')).toBe(0);
    expect(() => journal.append(['a', '../b'], 'row\n')).toThrow();
    expect(() => journal.append(['a', 'b', 'c', 'd', 'e'], 'row\n')).toThrow();
    expect(() => journal.append([], 'row\n')).toThrow();
    await journal.durable();
    expect(['a', 'b', 'c'].map((target) => text(journal, target))).toEqual(['row\n', 'before\nrow\n', 'row\n']);
    expect(journal.stats().records).toBe(2);
  });

  it('SE-06 SE-08 keeps what was acknowledged through 20 kills', async () => {
    using temporary = temporaryDirectory();
    for (let round = 0; round < 20; round++) {
      await using writer = startProgram('writer.mjs', [temporary.path, String(50 + round * 20)]);
      await writer.printed(1 + Math.floor(Math.random() * 120));
      writer.child.kill('SIGKILL');
      await writer.ended;
      const accepted = Math.max(0, ...writer.lines.map((line) => Number(line.split(' ')[1])));
      await using journal = await Journal.open(temporary.path);
      checkWriterRows(journal, accepted);
    }
  });
});

/** Rows 1..n are in their files, n is at least what was accepted, and every file is whole. */
function checkWriterRows(journal: Journal, accepted: number): void {
  const rows = [0, 1, 2].flatMap((file) => {
    const target = `rows/${file}.jsonl`;
    if (journal.size(target) === 0) return [];
    const numbers = text(journal, target)
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { n: number }).n);
    expect(numbers.every((n, i) => i === 0 || n === (numbers[i - 1] as number) + 3)).toBe(true);
    return numbers;
  });
  const counted = journal.size('count') / 16;
  expect(counted).toBeGreaterThanOrEqual(accepted);
  // The three changes of a row are three records: the last row may lack its later ones.
  expect([counted, counted + 1]).toContain(Math.max(...rows));
  expect(new Set(rows).size).toBe(Math.max(...rows));
  expect([counted, counted + 1]).toContain(Number(text(journal, 'last')));
}
