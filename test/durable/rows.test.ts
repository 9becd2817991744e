import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lastRow, readRows, readRowsBackward, type TornLine, toRow } from '../../src/durable/rows.js';
import { collect } from './support/collect.js';
import { temporaryDirectory } from './support/temporary.js';

describe('rows', () => {
  it('SE-17 gives the same rows forward and backward, whatever lies on the border of a block', async () => {
    using temporary = temporaryDirectory();
    const path = join(temporary.path, 'rows.jsonl');
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.integer({ min: 65_400, max: 65_700 }).map((length) => '\u{1f4be}'.padEnd(length, 'ä')),
      fc.constantFrom('\ud800', '\0', '\u{10ffff}', '\n', '"'),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 12 }), async (texts) => {
        const rows = texts.map((content, n) => ({ n, content }));
        writeFileSync(path, rows.map(toRow).join(''));
        expect(await collect(readRows(path))).toEqual(rows);
        expect(await collect(readRowsBackward(path))).toEqual(rows.toReversed());
        expect(await lastRow(path)).toEqual(rows.at(-1));
      }),
      { numRuns: 50 },
    );
  });

  it('SE-17 has no rows where there is no file', async () => {
    expect(await collect(readRows('/nonexistent/rows'))).toEqual([]);
    expect(await lastRow('/nonexistent/rows')).toBeUndefined();
  });

  it('SE-17 reports a last line without an end and a line that is not JSON, with their place', async () => {
    using temporary = temporaryDirectory();
    const path = join(temporary.path, 'rows.jsonl');
    writeFileSync(path, '{"n":1}\n{"n":2');
    const torn: TornLine[] = [];
    expect(await collect(readRows(path, (line) => torn.push(line)))).toEqual([{ n: 1 }]);
    expect(torn).toEqual([{ offset: 8, bytes: 6 }]);
    const corrupt = (message: RegExp) => ({ code: 'STATE_CORRUPT', message: expect.stringMatching(message) });
    await expect(collect(readRows(path))).rejects.toMatchObject(corrupt(/no end, at byte 8$/));
    await expect(lastRow(path)).rejects.toMatchObject(corrupt(/no end/));
    writeFileSync(path, '{"n":1}\n\0\0\0\n{"n":3}\n');
    await expect(collect(readRows(path))).rejects.toMatchObject(corrupt(/not JSON, at byte 8$/));
    await expect(collect(readRowsBackward(path))).rejects.toMatchObject(corrupt(/not JSON, at byte 8$/));
  });

  it('SE-17 refuses a line that would need unbounded memory', async () => {
    using temporary = temporaryDirectory();
    const path = join(temporary.path, 'rows.jsonl');
    writeFileSync(path, Buffer.alloc(33 * 1024 * 1024, 'x'));
    await expect(collect(readRows(path))).rejects.toMatchObject({ code: 'STATE_CORRUPT' });
    writeFileSync(path, '\n', { flag: 'a' });
    await expect(lastRow(path)).rejects.toMatchObject({ code: 'STATE_CORRUPT' });
  });
});
