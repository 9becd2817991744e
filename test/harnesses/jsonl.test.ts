import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonLines, type Line } from '../../src/harnesses/jsonl.js';

function read(
  bytes: Uint8Array,
  sizes: readonly number[],
  options: ConstructorParameters<typeof JsonLines>[0] = {},
): Line[] {
  const lines = new JsonLines(options);
  const found: Line[] = [];
  let start = 0;
  for (let turn = 0; start < bytes.length; turn += 1) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
    found.push(...lines.push(bytes.subarray(start, start + size)));
    start += size;
  }
  found.push(...lines.end());
  return found;
}

const awkward = Buffer.from(
  ['{"a":"žluťoučký 🐎"}\r', '', '   ', 'noise: not JSON', '{"broken":', '[1,2]', '42', '{"last":true}'].join('\n'),
);

describe('JSON lines', () => {
  it('HA-06 gives the same lines for every chunking, with CRLF, blanks, noise and a last line without a newline', () => {
    const whole = read(awkward, [awkward.length]);
    expect(whole).toEqual([
      { kind: 'object', value: { a: 'žluťoučký 🐎' } },
      { kind: 'noise', text: 'noise: not JSON' },
      { kind: 'noise', text: '{"broken":' },
      { kind: 'noise', text: '[1,2]' },
      { kind: 'noise', text: '42' },
      { kind: 'object', value: { last: true } },
    ]);
    expect(read(awkward, [1])).toEqual(whole);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }), (sizes) => {
        expect(read(awkward, sizes)).toEqual(whole);
      }),
    );
  });

  it('HA-06 keeps nothing of a line above the limit, tells its size, and goes on', () => {
    const bytes = Buffer.from(`{"a":"${'x'.repeat(200)}"}\n{"b":1}\n${'y'.repeat(150)}`);
    for (const sizes of [[1], [7, 64], [bytes.length]]) {
      expect(read(bytes, sizes, { maxLineBytes: 100 })).toEqual([
        { kind: 'oversize', bytes: 208 },
        { kind: 'object', value: { b: 1 } },
        { kind: 'oversize', bytes: 150 },
      ]);
    }
  });

  it('HA-06 takes a line of 16 MiB and refuses one byte more', () => {
    const limit = 16 * 1024 * 1024;
    const line = (size: number): Buffer => Buffer.from(`{"a":"${'x'.repeat(size - 8)}"}\n`);
    expect(read(line(limit), [65_536])[0]?.kind).toBe('object');
    expect(read(line(limit + 1), [65_536])).toEqual([{ kind: 'oversize', bytes: limit + 1 }]);
  });

  it('HA-06 survives output that is binary or nested without end', () => {
    const binary = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a, 0xc3]);
    expect(read(binary, [2]).every((line) => line.kind === 'noise')).toBe(true);
    const nested = read(Buffer.from(`{"a":${'['.repeat(1_000_000)}\n`), [65_536]);
    expect(nested).toMatchObject([{ kind: 'noise' }]);
  });
});
