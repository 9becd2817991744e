import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { Journal } from '../../src/durable/journal.js';
import { JournalLeaseStore } from '../../src/lifecycle/journal-lease-store.js';
import type { LeaseRecord } from '../../src/lifecycle/lease-record.js';
import { DIST, FakeDaemon } from './fake-daemon.js';
import { recordOf, Stranger } from './strangers.js';
import { BOUNDARIES, isAlive, STUBBORN, untilGone } from './support.js';

/** A daemon in a process of its own that recovers, and stops at each place until it is told to go on. */
class Reaper implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;
  readonly #lines: AsyncIterator<string>;

  constructor(directory: string, options: object) {
    const argv = [join(import.meta.dirname, 'fixtures/reaper.mjs'), directory, JSON.stringify(options)];
    const env = { ...process.env, BRIDLE_DIST_DIR: DIST };
    this.#process = spawn(process.execPath, argv, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exit = once(this.#process, 'exit');
    const input = this.#process.stdout as NodeJS.ReadableStream;
    this.#lines = createInterface({ input })[Symbol.asyncIterator]();
  }

  /** The next thing that it says. */
  async says(): Promise<unknown> {
    return (await this.#lines.next()).value;
  }

  goOn(): void {
    this.#process.stdin?.write('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exit;
  }
}

/** The directory in which reapers find records. */
class Revisions implements Disposable {
  readonly directory: string;
  readonly #folder: string;

  constructor(record: LeaseRecord, directory = mkdtempSync(join(tmpdir(), 'lifecycle-'))) {
    this.directory = directory;
    this.#folder = join(directory, 'revisions');
    mkdirSync(this.#folder);
    writeFileSync(join(this.#folder, `${record.id}.${record.revision}`), JSON.stringify(record));
  }

  get names(): string[] {
    return readdirSync(this.#folder);
  }

  /** The record as this revision has it. */
  read(id: string, revision: number): unknown {
    return JSON.parse(readFileSync(join(this.#folder, `${id}.${revision}`), 'utf8'));
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true });
  }
}

/**
 * Two reapers have seen the same record when the first one writes its revision. It stops there, and the other one must
 * leave the record; a third, which comes later, must do so, too.
 * @param whileHeld what must hold as long as the winner has done nothing
 * @returns what the winner made of it
 */
async function compete(directory: string, options: object, whileHeld: () => void): Promise<unknown> {
  await using winner = new Reaper(directory, options);
  await using loser = new Reaper(directory, options);
  for (const reaper of [winner, loser]) expect(await reaper.says()).toBe('listed');
  winner.goOn();
  expect(await winner.says()).toBe('claimed');
  loser.goOn();
  expect(await loser.says()).toBe('["left"]');
  whileHeld();
  await using late = new Reaper(directory, options);
  expect(await late.says()).toBe('listed');
  late.goOn();
  expect(await late.says()).toBe('["left"]');
  whileHeld();
  winner.goOn();
  return await winner.says();
}

describe('two reapers', () => {
  const withCgroup = BOUNDARIES.filter(({ cgroup }) => cgroup);

  it.each(withCgroup)('LC-50 of one record: one acts, the other leaves it, $name', async ({ cgroup }) => {
    await using daemon = await FakeDaemon.start(STUBBORN, { cgroup });
    await daemon.identityOf('child');
    const grandchild = await daemon.identityOf('grandchild');
    await daemon.kill({ supervisor: true, reaper: true });
    const revisions = new Revisions(daemon.record, daemon.directory);
    const outcome = await compete(daemon.directory, {}, () => {
      expect(isAlive(grandchild)).toBe(true);
      expect(revisions.names).toHaveLength(2);
    });
    expect(outcome).toBe('["completed"]');
    expect(isAlive(grandchild)).toBe(false);
    expect(revisions.names).toEqual([]);
  });

  it('LC-50 of one record: one acts, the other leaves it, without a cgroup', async () => {
    await using child = new Stranger();
    const { identity } = child;
    const record = await recordOf({ child: identity });
    using revisions = new Revisions(record);
    const outcome = await compete(revisions.directory, { cgroup: false }, () => {
      expect(isAlive(identity)).toBe(true);
      expect(revisions.names).toHaveLength(2);
    });
    // It ended what it could prove to be the child; what that had started nobody knows.
    expect(outcome).toBe('["recovery_blocked"]');
    await untilGone(identity);
    expect(revisions.read(record.id, 3)).toMatchObject({ state: 'recovery_blocked' });
    expect(revisions.names).toHaveLength(3);
  });

  it('LC-50 a record that somebody else changed is not written over', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'lifecycle-'));
    try {
      await using journal = await Journal.open(directory);
      const store = new JournalLeaseStore(journal);
      const record = await recordOf();
      expect(await store.put(record)).toBe(true);
      const claimed = { ...record, revision: 2, state: 'cleaning' as const };
      expect(await store.put(claimed)).toBe(true);
      expect(await store.put({ ...claimed, harness: 'other' })).toBe(false);
      await store.remove(record);
      expect(await store.list()).toEqual([{ id: record.id, content: claimed }]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
