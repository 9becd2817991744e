import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import { Journal } from '../../src/durable/journal.js';
import { JournalLeaseStore } from '../../src/lifecycle/journal-lease-store.js';
import { type LeaseStep, Lifecycle } from '../../src/lifecycle/lifecycle.js';
import { identify } from '../../src/native/identity.js';
import { until } from '../support/until.js';
import { BOUNDARIES, kill, leaseCgroups, untilGone } from './support.js';

const FIXTURE = join(import.meta.dirname, 'fixtures/crashing.mjs');
const STEPS: readonly LeaseStep[] = [
  ...(['spawned', 'held', 'recorded', 'released', 'started'] as const),
  ...(['closing', 'marked', 'emptied', 'removed'] as const),
];
/** Before these a program may not have run at all. */
const BEFORE_THE_PROGRAM: readonly LeaseStep[] = ['spawned', 'held', 'recorded', 'released'];
/** Writes the process ids of a child and of one that escaped, then stays. */
const SCRIPT = `trap '' TERM
(setsid sh -c 'trap "" TERM; echo $$ > "$1/b.pid"; while :; do sleep 0.1; done' sh "$1" &)
echo $$ > "$1/a.pid"; while :; do sleep 0.1; done`;

interface Crash {
  readonly lease: string;
  readonly reached: boolean;
  /** The supervisor or the reaper was there and was killed. */
  readonly killed: boolean;
  readonly outcome: { readonly started: string; readonly cleanup: { readonly empty: boolean } } | undefined;
}

class Crashing implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'crash-'));

  async run(step: LeaseStep, victim: string, options: object): Promise<Crash> {
    const args = [FIXTURE, this.directory, JSON.stringify(options), step, victim, SCRIPT];
    const stdout = await new Promise<string>((resolve) => {
      execFile(process.execPath, args, (_error, text) => resolve(text));
    });
    const [lease = '', ...rest] = stdout.trim().split('\n');
    const last = rest.find((line) => line.startsWith('{'));
    return {
      lease,
      reached: rest.includes('reached'),
      killed: rest.includes('killed'),
      outcome: last === undefined ? undefined : JSON.parse(last),
    };
  }

  /** What runs of the script's processes; none when it never ran. */
  survivors(): ProcessIdentity[] {
    const files = readdirSync(this.directory).filter((name) => name.endsWith('.pid'));
    return files.flatMap((name) => identify(Number(readFileSync(join(this.directory, name), 'utf8'))) ?? []);
  }

  async recover(options: object) {
    await using journal = await Journal.open(this.directory);
    const store = new JournalLeaseStore(journal);
    return await new Lifecycle({ stateDir: this.directory, store, ...options }).recover();
  }

  left(name: string): string[] {
    const path = join(this.directory, name);
    return existsSync(path) ? readdirSync(path) : [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const identity of this.survivors()) {
      kill(identity);
      await untilGone(identity);
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}

describe('the crash matrix', { timeout: 300_000 }, () => {
  it.each(BOUNDARIES)(
    'LC-51 a daemon killed at any step leaves nothing to its successor, $name',
    async ({ cgroup }) => {
      for (const step of STEPS) {
        await using crashing = new Crashing();
        const crash = await crashing.run(step, 'daemon', { cgroup });
        expect(crash, step).toMatchObject({ reached: true, outcome: undefined });
        const recovered = await crashing.recover({ cgroup });
        // A record that is there is settled; before it was written there is none.
        expect(recovered.filter(({ outcome }) => outcome !== 'completed')).toEqual([]);
        expect(recovered.length, step).toBeLessThanOrEqual(1);
        if (step === 'recorded' || step === 'released' || step === 'started') expect(recovered, step).toHaveLength(1);
        await until(() => crashing.survivors().length === 0, `nothing runs after ${step}`);
        expect(crashing.left('leases'), step).toEqual([]);
        await until(
          () => !leaseCgroups().some((name) => name.endsWith(crash.lease)),
          `no cgroup is left after ${step}`,
        );
        // The supervisor of a start without a record may leave its witness only after the first look.
        await until(async () => {
          await crashing.recover({ cgroup });
          return crashing.left('witness').length === 0;
        }, `no witness is left after ${step}`);
      }
    },
  );

  it.each(BOUNDARIES.flatMap((row) => ['supervisor', 'reaper'].map((victim) => ({ ...row, victim }))))(
    'LC-51 a $victim killed at any step costs at most the run, $name',
    async ({ cgroup, victim }) => {
      for (const step of STEPS) {
        await using crashing = new Crashing();
        const crash = await crashing.run(step, victim, { cgroup });
        expect(crash, step).toMatchObject({ reached: true, outcome: { cleanup: { empty: true } } });
        // A start that is just begun has no reaper yet, and after the end both may have left.
        if (['held', 'recorded', 'released', 'started', 'closing'].includes(step))
          expect(crash.killed, step).toBe(true);
        // Killed before the program runs it is a failed start, later it is a run that was cut off.
        if (!BEFORE_THE_PROGRAM.includes(step)) expect(crash.outcome?.started, step).toBe('started');
        expect(crashing.survivors(), step).toEqual([]);
        expect(crashing.left('leases'), step).toEqual([]);
        expect(
          leaseCgroups().filter((name) => name.endsWith(crash.lease)),
          step,
        ).toEqual([]);
      }
    },
  );
});
