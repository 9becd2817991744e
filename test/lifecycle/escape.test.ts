import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import type { LeaseRecord } from '../../src/lifecycle/lease-record.js';
import type { Lease, LifecycleOptions, RecoveredLease } from '../../src/lifecycle/lifecycle.js';
import { signalProcess } from '../../src/native/process.js';
import { FakeDaemon } from './fake-daemon.js';
import { BOUNDARIES, cgroupOf, isAlive, kill, OPERATION, untilGone, World, writtenIdentity } from './support.js';

const SIGSTOP = 19;
const NAMES = ['A', 'B', 'C', 'D', 'E'];

const place = mkdtempSync(join(tmpdir(), 'escape-'));
const program = join(place, 'escape');

beforeAll(() => {
  execFileSync('cc', ['-O1', '-o', program, join(import.meta.dirname, 'fixtures/escape.c')]);
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

async function descendants(directory: string, names = NAMES): Promise<ProcessIdentity[]> {
  return await Promise.all(names.map((name) => writtenIdentity(directory, name)));
}

/** Whatever a test made, none of it stays. */
async function endAll(identities: readonly ProcessIdentity[]): Promise<void> {
  for (const identity of identities) {
    kill(identity);
    await untilGone(identity);
  }
}

/** Endings with a living daemon. Each gives the identities that existed when it began. */
const LIVING: readonly { readonly name: string; readonly end: (lease: Lease, record: LeaseRecord) => void }[] = [
  { name: 'cancel', end: () => undefined },
  {
    name: 'timeout',
    end: (lease) => {
      const signal = AbortSignal.timeout(1);
      signal.addEventListener('abort', () => void lease.close(), { once: true });
    },
  },
  { name: 'SIGKILL of the supervisor', end: (_lease, { supervisor }) => kill(supervisor) },
  { name: 'SIGKILL of the reaper', end: (_lease, { reaper }) => kill(reaper) },
];

describe('the escape matrix', () => {
  it.each(
    BOUNDARIES.flatMap((boundary) => LIVING.map((ending) => ({ ...boundary, ending: ending.name, end: ending.end }))),
  )('LC-31 nothing survives: $ending, $name', async ({ cgroup, end }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch({ argv: [program, world.directory], env: {}, cwd: '/' });
    const all = await descendants(world.directory);
    const record = world.store.only();
    try {
      end(lease, record);
      expect(await lease.close()).toEqual({ empty: true });
      expect(all.filter(isAlive)).toEqual([]);
      // The one that was not killed leaves once its report was heard.
      for (const identity of [record.supervisor, record.reaper]) if (identity) await untilGone(identity);
      expect(existsSync(cgroupOf(record)?.path ?? '')).toBe(false);
      expect(world.store.records.size).toBe(0);
    } finally {
      await endAll(all);
    }
  });

  it.each(BOUNDARIES)('LC-31 nothing survives: normal exit, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({ argv: [program, world.directory, 'end'], env: {}, cwd: '/' });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    const left = await descendants(world.directory, NAMES.slice(1));
    try {
      expect(await lease.close()).toEqual({ empty: true });
      expect(left.filter(isAlive)).toEqual([]);
    } finally {
      await endAll(left);
    }
  });

  it.each(BOUNDARIES)('LC-31 SIGKILL of supervisor and reaper while the daemon lives, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch({ argv: [program, world.directory], env: {}, cwd: '/' });
    const all = await descendants(world.directory);
    const { supervisor, reaper } = world.store.only();
    try {
      signalProcess(supervisor, SIGSTOP);
      kill(reaper);
      kill(supervisor);
      const cleanup = await lease.close();
      if (cgroup) {
        expect(cleanup).toEqual({ empty: true });
        expect(all.filter(isAlive)).toEqual([]);
      } else {
        expect(cleanup).toMatchObject({ empty: false, evidence: [{ kind: 'boundary_indeterminate' }] });
        expect(world.lifecycle.strength.weakness).toContain('killed at once');
        expect(world.store.only().state).toBe('cleanup_failed');
      }
    } finally {
      await endAll(all);
    }
  });
});

/** Endings of the daemon. `found`: what the next daemon makes of it where there is no cgroup. */
const DYING = [
  { name: 'SIGKILL of the daemon', kill: { supervisor: false }, restart: false },
  { name: 'SIGKILL of daemon and supervisor at once', kill: { supervisor: true }, restart: false },
  { name: 'SIGKILL of daemon and supervisor, then a restart', kill: { supervisor: true }, restart: true },
  {
    name: 'SIGKILL of daemon, supervisor and reaper, then a restart',
    kill: { supervisor: true, reaper: true },
    restart: true,
  },
];
const TOKENS: readonly Pick<LifecycleOptions, 'birthToken'>[] = [{}, { birthToken: 'starttime' }];

describe('the escape matrix of a dying daemon', () => {
  it.each(
    BOUNDARIES.flatMap((boundary) => DYING.map((ending) => ({ ...boundary, ending }))).flatMap((row) =>
      TOKENS.map((token) => ({ ...row, token, by: token.birthToken ?? 'the best tokens' })),
    ),
  )('LC-31 nothing survives: $ending.name, $name, by $by', async ({ cgroup, ending, token }) => {
    const options = { cgroup, ...token };
    const script = `exec "${program}" "$1"`;
    await using daemon = await FakeDaemon.start(script, options);
    const all = await Promise.all(NAMES.map((name) => daemon.identityOf(name)));
    await daemon.kill(ending.kill);
    const lost = !cgroup && ending.kill.reaper === true;
    let recovered: RecoveredLease[] = [];
    if (ending.restart) recovered = await daemon.recover(options);
    if (lost) {
      // The one mode that cannot be won: it is said, and nobody is signalled on a guess.
      expect(recovered).toMatchObject([
        { outcome: 'recovery_blocked', evidence: [{ kind: 'boundary_indeterminate' }] },
      ]);
      expect(existsSync(daemon.recordPath())).toBe(true);
      return;
    }
    for (const identity of all) await untilGone(identity);
    if (ending.restart) {
      expect(recovered).toMatchObject([{ outcome: 'completed', evidence: [] }]);
      expect(existsSync(daemon.recordPath())).toBe(false);
      expect(existsSync(cgroupOf(daemon.record)?.path ?? '')).toBe(false);
    }
  });
});
