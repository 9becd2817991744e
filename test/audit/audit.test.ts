import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AuditLog } from '../../src/audit/audit-log.js';
import { verifyAudit } from '../../src/audit/verify.js';
import { Journal } from '../../src/durable/journal.js';
import { readRows } from '../../src/durable/rows.js';
import { collect } from '../durable/support/collect.js';
import { temporaryDirectory } from '../durable/support/temporary.js';

async function audited(
  directory: string,
  facts: readonly { readonly type: string; readonly [field: string]: unknown }[],
) {
  await using journal = await Journal.open(directory);
  const log = await AuditLog.open(journal);
  return facts.map((fact) => log.append(fact));
}

const fileOf = (directory: string) => join(directory, 'audit.jsonl');

describe('audit', () => {
  it('SE-40 chains rows of any content by their canonical JSON', async () => {
    using temporary = temporaryDirectory();
    const fact = fc.record({
      type: fc.string(),
      uid: fc.nat(),
      detail: fc.jsonValue(),
      text: fc.string({ unit: 'binary' }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fact, { maxLength: 5 }), async (facts) => {
        await audited(temporary.path, facts);
      }),
      { numRuns: 20 },
    );
    const [first] = await audited(temporary.path, [{ type: 'last', skipped: undefined, lone: '\ud800', minus: -0 }]);
    const verified = await verifyAudit(readRows(fileOf(temporary.path)));
    expect(verified).toEqual({ ok: true, rows: first?.seq, head: first?.hash });
    const rows = await collect(readRows(fileOf(temporary.path)));
    expect(rows[0]).toMatchObject({ seq: 1, prev: '0'.repeat(64), ts: expect.stringMatching(/^\d{4}-.*Z$/) });
  });

  it('SE-40 has a hash that anybody can compute', async () => {
    using temporary = temporaryDirectory();
    const [row] = await audited(temporary.path, [{ type: 'x', b: { z: 1, a: [true, null] }, a: 'ä' }]);
    const { createHash } = await import('node:crypto');
    const canonical = `{"a":"ä","b":{"a":[true,null],"z":1},"prev":"${'0'.repeat(64)}","seq":1,"ts":"${row?.ts}","type":"x"}`;
    expect(row?.hash).toBe(createHash('sha256').update(canonical).digest('hex'));
  });

  it('SE-41 finds a changed byte, a missing row, a swap and an insertion, and says where', async () => {
    using temporary = temporaryDirectory();
    await audited(
      temporary.path,
      Array.from({ length: 20 }, (_, i) => ({ type: 'run', request: `r${i}`, uid: i })),
    );
    const lines = readFileSync(fileOf(temporary.path), 'utf8').trimEnd().split('\n');
    const check = (changed: readonly string[]) => verifyAudit(changed.map((line) => JSON.parse(line) as unknown));
    expect(await check(lines)).toMatchObject({ ok: true, rows: 20 });
    const edited = lines.with(6, (lines[6] as string).replace('"r6"', '"rX"'));
    expect(await check(edited)).toEqual({ ok: false, row: 7, fault: 'changed' });
    expect(await check(lines.toSpliced(4, 1))).toEqual({ ok: false, row: 5, fault: 'missing or reordered' });
    expect(await check(lines.slice(1))).toEqual({ ok: false, row: 1, fault: 'missing or reordered' });
    const swapped = lines.with(8, lines[9] as string).with(9, lines[8] as string);
    expect(await check(swapped)).toEqual({ ok: false, row: 9, fault: 'missing or reordered' });
    expect(await check(lines.toSpliced(3, 0, lines[2] as string))).toMatchObject({ ok: false, row: 4 });
    expect(await check(lines.with(0, '{"seq":1}'))).toEqual({ ok: false, row: 1, fault: 'not a row' });
    const cut = await check(lines.slice(0, -1));
    expect(cut).toMatchObject({ ok: true, rows: 19 });
    expect(cut).not.toMatchObject({ head: (JSON.parse(lines.at(-1) as string) as { hash: string }).hash });
  });

  it('SE-42 goes on after a restart and refuses a damaged last row', async () => {
    using temporary = temporaryDirectory();
    for (let i = 0; i < 3; i++)
      await audited(temporary.path, [
        { type: 'start', i },
        { type: 'stop', i },
      ]);
    expect(await verifyAudit(readRows(fileOf(temporary.path)))).toMatchObject({ ok: true, rows: 6 });
    const text = readFileSync(fileOf(temporary.path), 'utf8');
    writeFileSync(fileOf(temporary.path), `not JSON\n${text}`);
    await audited(temporary.path, [{ type: 'only the last row was read' }]);
    writeFileSync(fileOf(temporary.path), text.replace('"stop","i":2', '"stop","i":3'));
    await expect(audited(temporary.path, [])).rejects.toMatchObject({ code: 'STATE_CORRUPT' });
  });
});
