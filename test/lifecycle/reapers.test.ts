import { describe, expect, it } from 'vitest';
import { Lifecycle } from '../../src/lifecycle/lifecycle.js';
import { FakeDaemon } from './fake-daemon.js';
import { BOUNDARIES, isAlive, MemoryStore, STUBBORN, untilGone } from './support.js';

describe('two reapers', () => {
  it.each(BOUNDARIES)('LC-50 of one record: one acts, the other leaves it, $name', async ({ cgroup }) => {
    for (let round = 0; round < 5; round += 1) {
      await using daemon = await FakeDaemon.start(STUBBORN, { cgroup });
      const child = await daemon.identityOf('child');
      const grandchild = await daemon.identityOf('grandchild');
      // Supervisor and reaper still clean up for the dead daemon, or nobody does.
      await daemon.kill({ supervisor: true, reaper: cgroup });
      const store = new MemoryStore();
      store.records.set(daemon.record.id, daemon.record);
      const reapers = [1, 2].map(() => new Lifecycle({ stateDir: daemon.directory, store, cgroup }));
      const outcomes = (await Promise.all(reapers.map((reaper) => reaper.recover()))).map(([lease]) => lease?.outcome);
      expect(outcomes.sort()).toEqual(['completed', 'left']);
      expect(store.records.size).toBe(0);
      await untilGone(child);
      expect(isAlive(grandchild)).toBe(false);
    }
  });

  it('LC-50 a record that somebody else changed is not written over', async () => {
    await using daemon = await FakeDaemon.start(STUBBORN, {});
    const store = new MemoryStore();
    store.records.set(daemon.record.id, daemon.record);
    const claimed = { ...daemon.record, revision: 2, state: 'cleaning' as const };
    expect(await store.put(claimed)).toBe(true);
    expect(await store.put({ ...claimed, harness: 'other' })).toBe(false);
    await store.remove(daemon.record);
    expect(store.records.get(daemon.record.id)).toEqual(claimed);
  });
});
