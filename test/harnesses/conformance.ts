import { describe, expect, it } from 'vitest';
import type { ExecuteRequest, Harness } from '../../src/contract/harness.js';
import { collect, finalOf, Workbench } from './workbench.js';

export interface ConformanceSubject {
  readonly name: string;
  /** The harness, set up so that it answers well. */
  good(bench: Workbench): Harness;
  /** The same, set up so that it never ends by itself; undefined for one that cannot hang. */
  hanging?(bench: Workbench): Harness;
  /** The same with its program missing; undefined for one without a program. */
  missing?(): Harness;
}

const OPTIONAL = {
  model: 'some-model',
  system: 'be terse',
  reasoning: 'low',
  temperature: 0.5,
  seed: 7,
} as const satisfies Partial<ExecuteRequest>;

/** The one suite that every harness passes. */
export function describeConformance(subject: ConformanceSubject): void {
  describe(`conformance of ${subject.name}`, () => {
    it('HA-02 yields exactly one final, last, and a text before it', async () => {
      await using bench = await Workbench.create();
      const events = await collect(subject.good(bench).execute(bench.request()));
      expect(finalOf(events).ok).toBe(true);
      expect(events.filter((event) => event.type === 'text').length).toBeGreaterThan(0);
    });

    it('HA-03 starts nothing when the run is aborted already', async () => {
      await using bench = await Workbench.create();
      const events = await collect(subject.good(bench).execute(bench.request({ signal: AbortSignal.abort() })));
      expect(finalOf(events)).toMatchObject({ ok: false });
      expect(finalOf(events).error).toBeUndefined();
      expect(bench.launcher.launched).toEqual([]);
    });

    it('HA-04 refuses every optional field that it does not list, before anything starts', async () => {
      await using bench = await Workbench.create();
      const { supports } = subject.good(bench).info();
      for (const [field, value] of Object.entries(OPTIONAL)) {
        if ((supports as readonly string[]).includes(field)) continue;
        const events = collect(subject.good(bench).execute(bench.request({ [field]: value })));
        await expect(events).rejects.toMatchObject({ code: 'UNSUPPORTED_FIELD', path: field });
      }
      expect(bench.launcher.launched).toEqual([]);
    });

    it('HA-04 takes every optional field that it lists', async () => {
      await using bench = await Workbench.create();
      const harness = subject.good(bench);
      const listed = Object.entries(OPTIONAL).filter(([field]) =>
        (harness.info().supports as readonly string[]).includes(field),
      );
      const events = await collect(harness.execute(bench.request(Object.fromEntries(listed))));
      expect(finalOf(events).ok).toBe(true);
    });

    it('HA-02 describes itself by its registered name and is healthy', async () => {
      await using bench = await Workbench.create();
      const harness = subject.good(bench);
      expect(harness.info().name).toBe(subject.name);
      expect(['memory', 'stdin', 'file']).toContain(harness.info().promptBy);
      expect(await harness.healthCheck()).toEqual({ healthy: true, reason: null });
    });

    const { hanging, missing } = subject;
    if (hanging !== undefined) {
      it('HA-03 ends with a final when it is aborted in the middle', async () => {
        await using bench = await Workbench.create();
        const controller = new AbortController();
        const events = collect(hanging(bench).execute(bench.request({ signal: controller.signal })));
        await expect.poll(() => bench.launcher.launched.length, { timeout: 10_000 }).toBe(1);
        controller.abort();
        expect(finalOf(await events)).toMatchObject({ ok: false });
      });
    }
    if (missing !== undefined) {
      it('HA-05 says that its program is missing and starts nothing', async () => {
        await using bench = await Workbench.create();
        const harness = missing();
        expect(harness.info().program).toBeNull();
        expect(await harness.healthCheck()).toMatchObject({ healthy: false, reason: expect.stringMatching(/\w/) });
        const events = collect(harness.execute(bench.request()));
        await expect(events).rejects.toMatchObject({ code: 'HARNESS_UNAVAILABLE' });
        expect(bench.launcher.launched).toEqual([]);
      });
    }
  });
}
