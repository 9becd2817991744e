import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Journal } from '../../src/durable/journal.js';
import { decodeRecord } from '../../src/durable/record.js';
import { readSegment, readSegmentHeader } from '../../src/durable/segment.js';
import { temporaryDirectory } from './support/temporary.js';

const TARGETS = ['log', 'a/log', 'a/b/log', 'a/state'] as const;

type Step =
  | { readonly op: 'append' | 'put'; readonly target: string; readonly fill: number; readonly now: boolean }
  | { readonly op: 'remove'; readonly target: string }
  | { readonly op: 'both'; readonly fill: number }
  | { readonly op: 'durable' }
  | { readonly op: 'turn' };

type Model = ReadonlyMap<string, string>;

const target = fc.constantFrom(...TARGETS);
const fill = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 1500 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant('append' as const), target, fill, now: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('put' as const), target, fill, now: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('remove' as const), target }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('both' as const), fill }) },
  { weight: 3, arbitrary: fc.constant({ op: 'durable' as const }) },
  { weight: 2, arbitrary: fc.constant({ op: 'turn' as const }) },
);

/** What the targets are after one more step. */
function next(model: Model, taken: Step, content: string): Model {
  const after = new Map(model);
  if (taken.op === 'append') after.set(taken.target, (model.get(taken.target) ?? '') + content);
  if (taken.op === 'put') after.set(taken.target, content);
  if (taken.op === 'remove') after.delete(taken.target);
  if (taken.op === 'both') for (const name of ['log', 'a/log']) after.set(name, (model.get(name) ?? '') + content);
  return after;
}

function take(journal: Journal, taken: Step, content: string): void {
  if (taken.op === 'append') journal.append(taken.target, content, { now: taken.now });
  if (taken.op === 'put') journal.put(taken.target, content, { now: taken.now });
  if (taken.op === 'remove') journal.remove(taken.target);
  if (taken.op === 'both') journal.append(['log', 'a/log'], content);
}

function observe(directory: string): Model {
  const seen = new Map<string, string>();
  for (const name of TARGETS) {
    const path = join(directory, name);
    if (existsSync(path)) seen.set(name, readFileSync(path, 'latin1'));
  }
  return seen;
}

const same = (a: Model, b: Model) => a.size === b.size && [...a].every(([name, content]) => b.get(name) === content);

interface Crash {
  /** Models after 0, 1, 2… changes. */
  readonly models: readonly Model[];
  /** Changes that must be there. */
  readonly promised: number;
  readonly image: string;
  /** At least what was on disk of each segment when targets were last changed. */
  readonly durableSizes: ReadonlyMap<string, number>;
  /** Targets that were changed, so that a loss of power can have damaged them. */
  readonly changed: ReadonlySet<string>;
}

/** Runs the steps and copies the directory as a crash would leave it; nothing is closed before. */
async function crash(root: string, steps: readonly Step[], survive: 'accepted' | 'durable'): Promise<Crash> {
  const live = join(root, 'live');
  mkdirSync(live);
  const journal = await Journal.open(live, { segmentBytes: 4096 });
  const models: Model[] = [new Map()];
  let promised = 0;
  let durableSizes = segmentSizes(live);
  const changed = new Set<string>();
  journal.onApplied((targets) => {
    durableSizes = segmentSizes(live);
    for (const name of targets) changed.add(name);
  });
  for (const [index, taken] of steps.entries()) {
    if (taken.op === 'durable') {
      await journal.durable();
      promised = models.length - 1;
    } else if (taken.op === 'turn') {
      await new Promise((resolve) => setImmediate(resolve));
    } else {
      const content = `<${index}:${'x'.repeat(taken.op === 'remove' ? 0 : taken.fill)}>\n`;
      take(journal, taken, content);
      models.push(next(models.at(-1) as Model, taken, content));
      if (survive === 'accepted' && 'now' in taken && taken.now) promised = models.length - 1;
    }
  }
  const image = join(root, 'image');
  cpSync(live, image, { recursive: true });
  const crashed = { models, promised, image, durableSizes, changed: new Set(changed) };
  await journal.close();
  return crashed;
}

function segmentSizes(directory: string): Map<string, number> {
  const names = readdirSync(join(directory, 'journal')).filter((name) => name.endsWith('.log'));
  return new Map(names.map((name) => [name, segment(directory, Number.parseInt(name, 10)).length]));
}

/** Reopens, and once more, and tells which prefix of the changes the targets show. */
async function recoveredPrefix({ models, image }: Crash): Promise<number> {
  const first = await Journal.open(image);
  const seen = observe(image);
  await first.close();
  await (await Journal.open(image)).close();
  expect(same(observe(image), seen)).toBe(true);
  return models.findLastIndex((model) => same(model, seen));
}

/** The part of each target that was checkpointed: the rest may be anything after a loss of power. */
function checkpointed({ image, durableSizes }: Crash): Map<string, number> {
  const bases = new Map<string, number>();
  const names = [...segmentSizes(image).keys()].sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const resets = new Set<string>();
  for (const name of names) {
    const bytes = readFileSync(join(image, 'journal', name)).subarray(0, durableSizes.get(name) ?? 0);
    const header = readSegmentHeader(bytes);
    for (let at = header?.size ?? bytes.length; at < bytes.length; ) {
      const record = decodeRecord(bytes, at, header?.seed ?? 0);
      if (record === undefined) break;
      for (const [changed, offset] of record.to) {
        if (record.op !== 'append') resets.add(changed);
        else if (!bases.has(changed)) bases.set(changed, offset);
      }
      at = record.next;
    }
  }
  for (const changed of resets) bases.set(changed, 0);
  return bases;
}

describe('recovery', () => {
  it('SE-06 SE-08 SE-16 shows a prefix of the calls with everything that was accepted, after any steps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
        using temporary = temporaryDirectory();
        const crashed = await crash(temporary.path, steps, 'accepted');
        expect(await recoveredPrefix(crashed)).toBeGreaterThanOrEqual(crashed.promised);
      }),
      { numRuns: 40 },
    );
  });

  it('SE-08 SE-09 SE-10 repairs what a loss of power does to journal and targets', async () => {
    const damage = fc.record({
      cut: fc.double({ min: 0, max: 1, noNaN: true }),
      garbage: fc.uint8Array({ maxLength: 60 }),
    });
    const perTarget = fc.array(
      fc.record({ keep: fc.nat(), garbage: fc.uint8Array({ maxLength: 60 }), gone: fc.boolean() }),
      {
        minLength: TARGETS.length,
        maxLength: TARGETS.length,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 60 }),
        damage,
        perTarget,
        async (steps, tail, files) => {
          using temporary = temporaryDirectory();
          const crashed = await crash(temporary.path, steps, 'durable');
          damageTargets(crashed, files);
          damageTail(crashed, tail);
          expect(await recoveredPrefix(crashed)).toBeGreaterThanOrEqual(crashed.promised);
        },
      ),
      { numRuns: 40 },
    );
  });

  it.each([
    ['part of a record', (bytes: Buffer, last: number) => bytes.subarray(0, last + 20)],
    [
      'zeros before garbage',
      (bytes: Buffer, last: number) => Buffer.concat([bytes.subarray(0, last), Buffer.alloc(5000), Buffer.from('x')]),
    ],
    [
      'garbage',
      (bytes: Buffer, last: number) => Buffer.concat([bytes.subarray(0, last), Buffer.alloc(900, '{"op":"')]),
    ],
    ['a flipped bit', (bytes: Buffer, last: number) => flip(bytes, last + 90)],
  ])('SE-10 cuts off %s and reports it', async (_what, damageOf) => {
    using temporary = temporaryDirectory();
    const { image, lastRecord } = await twoBatches(temporary.path);
    const path = join(image, 'journal', '1.log');
    const damaged = damageOf(segment(image), lastRecord);
    writeFileSync(path, damaged);
    await using journal = await Journal.open(image);
    expect(readFileSync(join(image, 'log'), 'utf8')).toBe('first\nsecond\n');
    const [torn] = journal.recovered.torn;
    expect(torn?.bytes).toBe(damaged.length - lastRecord);
    expect(readFileSync(join(image, torn?.file ?? '')).equals(damaged.subarray(lastRecord))).toBe(true);
    await journal.close();
    await using again = await Journal.open(image);
    expect(again.recovered.torn).toEqual([]);
  });

  it('SE-11 refuses when a record that had been on disk is damaged, and leaves everything as it is', async () => {
    using temporary = temporaryDirectory();
    const { image } = await twoBatches(temporary.path);
    const path = join(image, 'journal', '1.log');
    const bytes = readFileSync(path);
    const damaged = flip(bytes, bytes.indexOf('first'));
    writeFileSync(path, damaged);
    await expect(Journal.open(image)).rejects.toMatchObject({ code: 'STATE_CORRUPT', message: /1\.log: record 1 is/ });
    expect(readFileSync(path).equals(damaged)).toBe(true);
    expect(readdirSync(join(image, 'journal'))).toEqual(['1.log']);
  });

  it('SE-11 refuses when a segment or the beginning of one is missing', async () => {
    using temporary = temporaryDirectory();
    const { image } = await twoBatches(temporary.path);
    const path = join(image, 'journal', '1.log');
    writeFileSync(path, readFileSync(path).subarray(10));
    await expect(Journal.open(image)).rejects.toMatchObject({ code: 'STATE_CORRUPT' });
  });

  it('SE-11 refuses when a target lost what had been checkpointed', async () => {
    using temporary = temporaryDirectory();
    const live = join(temporary.path, 'live');
    mkdirSync(live);
    const first = await Journal.open(live);
    first.append('log', 'checkpointed\n');
    await first.close();
    await using second = await Journal.open(live);
    second.append('log', 'more\n');
    await second.durable();
    const image = join(temporary.path, 'image');
    cpSync(live, image, { recursive: true });
    truncateSync(join(image, 'log'), 3);
    await expect(Journal.open(image)).rejects.toMatchObject({ code: 'STATE_CORRUPT', message: /^log is shorter/ });
  });

  it('SE-12 takes no content of a payload for a record', async () => {
    using temporary = temporaryDirectory();
    const live = join(temporary.path, 'live');
    mkdirSync(live);
    const journal = await Journal.open(live);
    // A client that knows everything but the secret: a valid record of another journal that claims a later promise.
    const other = join(temporary.path, 'other');
    mkdirSync(other);
    const stranger = await Journal.open(other);
    for (let i = 0; i < 3; i++) {
      stranger.put('log', 'forged');
      await stranger.durable();
    }
    const forged = segment(other);
    journal.append('log', 'first\n');
    await journal.durable();
    journal.append('log', Buffer.concat([forged, Buffer.from('\nthe end of the payload')]), { now: true });
    const image = join(temporary.path, 'image');
    cpSync(live, image, { recursive: true });
    await Promise.all([journal.close(), stranger.close()]);
    const path = join(image, 'journal', '1.log');
    truncateSync(path, segment(image).length - 10);
    await using recovered = await Journal.open(image);
    expect(recovered.recovered).toMatchObject({ replayed: 1, torn: [{ file: expect.any(String) }] });
    expect(readFileSync(join(image, 'log'), 'utf8')).toBe('first\n');
  });
});

/** Bytes of a segment without the zeros that wait for records. */
function segment(directory: string, number = 1): Buffer {
  return readSegment(join(directory, 'journal'), number);
}

function flip(bytes: Buffer, at: number): Buffer {
  const damaged = Buffer.from(bytes);
  damaged[at] = (damaged[at] ?? 0) ^ 0x10;
  return damaged;
}

/** A crashed journal with two promised rows and one that was not promised, which begins at `lastRecord`. */
async function twoBatches(root: string): Promise<{ readonly image: string; readonly lastRecord: number }> {
  const live = join(root, 'live');
  mkdirSync(live);
  const journal = await Journal.open(live);
  journal.append('log', 'first\n');
  await journal.durable();
  journal.append('log', 'second\n');
  await journal.durable();
  const lastRecord = segment(live).length;
  journal.append('log', 'third, which nobody was promised\n', { now: true });
  const image = join(root, 'image');
  cpSync(live, image, { recursive: true });
  await journal.close();
  return { image, lastRecord };
}

interface FileDamage {
  readonly keep: number;
  readonly garbage: Uint8Array;
  readonly gone: boolean;
}

function damageTargets(crashed: Crash, files: readonly FileDamage[]): void {
  const bases = checkpointed(crashed);
  for (const [index, name] of TARGETS.entries()) {
    const base = bases.get(name);
    const { keep, garbage, gone } = files[index] as FileDamage;
    if (base === undefined || !crashed.changed.has(name)) continue;
    const path = join(crashed.image, name);
    const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
    mkdirSync(dirname(path), { recursive: true });
    const kept = bytes.subarray(0, Math.max(base, keep % (bytes.length + 1)));
    writeFileSync(path, Buffer.concat([kept, garbage]));
    if (gone && base === 0) rmSync(path);
  }
}

/** Cuts the last segment somewhere after what was promised and puts garbage there. */
function damageTail({ image, durableSizes }: Crash, { cut, garbage }: { cut: number; garbage: Uint8Array }): void {
  const sizes = [...segmentSizes(image)].sort(([a], [b]) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const last = sizes.findLast(([name, size]) => size > (durableSizes.get(name) ?? 0)) ?? sizes.at(-1);
  const [name, size] = last as [string, number];
  const path = join(image, 'journal', name);
  const bytes = segment(image, Number.parseInt(name, 10));
  const header = readSegmentHeader(bytes)?.size ?? 0;
  const from = Math.max(durableSizes.get(name) ?? 0, header);
  if (from > size) return;
  const kept = bytes.subarray(0, from + Math.floor(cut * (size - from)));
  writeFileSync(path, Buffer.concat([kept, garbage]));
}
