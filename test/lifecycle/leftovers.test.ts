import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Journal } from '../../src/durable/journal.js';
import { JournalLeaseStore } from '../../src/lifecycle/journal-lease-store.js';
import type { Lease } from '../../src/lifecycle/lease.js';
import type { StoredLease } from '../../src/lifecycle/lease-store.js';
import { LEASE } from './strangers.js';
import { cgroupOf, isAlive, MemoryStore, OPERATION, World } from './support.js';

const OTHER = 'fedcba9876543210'.repeat(2);

/** A store that does something at a look of recovery: first for records to settle, then for what nobody knows. */
class WatchedStore extends MemoryStore {
  readonly looks: (() => unknown)[] = [];

  override async list(): Promise<StoredLease[]> {
    await this.looks.shift()?.();
    return await super.list();
  }
}

/** What a lease without a process can have: a witness, and a cgroup where they can be made. */
class Traces implements Disposable {
  readonly #world: World;
  /** Path of the cgroup of a lease; undefined where there are none. */
  readonly #cgroupOf: (id: string) => string | undefined;
  readonly #made: string[] = [];

  private constructor(world: World, cgroup: (id: string) => string | undefined) {
    this.#world = world;
    this.#cgroupOf = cgroup;
  }

  static async in(world: World): Promise<Traces> {
    await using lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch(world.script('sleep 60'));
    const path = cgroupOf(world.store.only())?.path;
    return new Traces(world, (id) => path?.replace(lease.id, id));
  }

  #pathsOf(id: string): string[] {
    const cgroup = this.#cgroupOf(id);
    return [this.#world.path(join('witness', id)), ...(cgroup === undefined ? [] : [cgroup])];
  }

  make(id: string): void {
    const [witness = '', cgroup] = this.#pathsOf(id);
    writeFileSync(witness, 'empty\n');
    if (cgroup === undefined) return;
    mkdirSync(cgroup);
    this.#made.push(cgroup);
  }

  /** Whether each trace of a lease is there. */
  of(id: string): boolean[] {
    return this.#pathsOf(id).map((path) => existsSync(path));
  }

  [Symbol.dispose](): void {
    for (const path of this.#made) if (existsSync(path)) rmdirSync(path);
  }
}

const ALL_THERE = (there: boolean[]): boolean => there.every(Boolean);
const NONE_THERE = (there: boolean[]): boolean => !there.some(Boolean);

describe('what recovery finds beside records', () => {
  it.each<[string, string, unknown]>([
    ['that is no JSON', LEASE, 'not JSON at all'],
    ['of another version', LEASE, { schema: 'bridle.lease/v2' }],
    ['under another name', 'damaged', { schema: 'bridle.lease/v2', id: LEASE }],
  ])('LC-45 keeps what belongs to a record %s', async (_name, name, content) => {
    await using world = new World();
    using traces = await Traces.in(world);
    world.store.records.set(name, content);
    traces.make(LEASE);
    traces.make(OTHER);
    expect(await world.lifecycle.recover()).toMatchObject([{ outcome: 'unreadable' }]);
    expect(traces.of(LEASE)).toSatisfy(ALL_THERE);
    // Of a lease that nobody knows.
    expect(traces.of(OTHER)).toSatisfy(NONE_THERE);
  });

  it('LC-45 tells the lease of a file that is not JSON, and is not stopped by one that goes away', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'lifecycle-'));
    try {
      await using journal = await Journal.open(directory);
      mkdirSync(join(directory, 'leases'));
      writeFileSync(join(directory, 'leases', `${LEASE}.json`), '{');
      // Reading it answers like reading a file that was removed after the directory was.
      symlinkSync('nowhere', join(directory, 'leases', `${OTHER}.json`));
      expect(await new JournalLeaseStore(journal).list()).toEqual([{ id: LEASE, content: '{' }]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('LC-52 leaves a lease alone that starts before its record is judged', async () => {
    const store = new WatchedStore();
    await using world = new World({}, store);
    const started: Lease[] = [];
    store.looks.push(async () => {
      const lease = world.lifecycle.lease(OPERATION);
      await lease.launcher.launch(world.script('sleep 60'));
      started.push(lease);
    });
    expect(await world.lifecycle.recover()).toMatchObject([{ id: started[0]?.id, outcome: 'left' }]);
    expect(store.only()).toMatchObject({ state: 'owned', revision: 1 });
    expect(isAlive(store.only().child)).toBe(true);
  });

  it('LC-52 keeps what a lease has before its record is written', async () => {
    const store = new WatchedStore();
    await using world = new World({}, store);
    using traces = await Traces.in(world);
    const held = world.lifecycle.lease(OPERATION);
    traces.make(held.id);
    traces.make(LEASE);
    // The last moment at which recovery learns which leases there are.
    store.looks.push(
      () => undefined,
      () => traces.make(OTHER),
    );
    await world.lifecycle.recover();
    expect(store.looks).toEqual([]);
    expect(traces.of(held.id)).toSatisfy(ALL_THERE);
    expect(traces.of(OTHER)).toSatisfy(ALL_THERE);
    expect(traces.of(LEASE)).toSatisfy(NONE_THERE);
  });
});
