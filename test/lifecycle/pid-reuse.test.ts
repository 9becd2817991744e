import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { probeContainment } from '../../src/native/process.js';
import { DIST } from './fake-daemon.js';

interface Trial {
  readonly scheme: 'pidfs' | 'starttime';
  readonly role: string;
  readonly churn: number;
  /** The stranger has the recorded token. */
  readonly equal: boolean;
  readonly signal: string;
  readonly outcome: string;
  readonly alive: boolean;
  /** Answer to a signal that names the stranger itself, afterwards. */
  readonly control: string;
}

const place = mkdtempSync(join(tmpdir(), 'pid-reuse-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));

it('LC-49 no stranger is signalled that has a recorded process id, whatever proof there is of it', {
  timeout: 600_000,
}, async () => {
  const fixtures = join(import.meta.dirname, 'fixtures');
  const recycler = join(place, 'recycler');
  execFileSync('cc', ['-O1', '-o', recycler, join(fixtures, 'recycler.c')]);
  const args = [
    ...(process.getuid?.() === 0 ? [] : ['--map-root-user']),
    ...['--pid', '--fork', '--mount-proc', '--kill-child'],
    ...[process.execPath, join(fixtures, 'pid-reuse.mjs'), recycler, place],
  ];
  const env = { ...process.env, BRIDLE_DIST_DIR: DIST };
  const { stdout } = await promisify(execFile)('unshare', args, { env });
  const { recycled, trials } = JSON.parse(stdout) as { recycled: number; trials: Trial[] };
  expect(recycled).toBeGreaterThan(100_000);
  expect(trials.filter(({ alive }) => !alive)).toEqual([]);
  expect(trials.filter(({ signal }) => signal !== 'mismatch')).toEqual([]);
  // What kept them alive is the token alone: with the right one they are reached.
  if (probeContainment().pidfs) expect(trials.filter(({ control }) => control !== 'sent')).toEqual([]);
  // An owner that may live keeps its record; everything else is told to people.
  for (const { scheme, role, outcome, equal } of trials) {
    const expected = role === 'owner' && equal ? 'left' : 'recovery_blocked';
    expect(outcome, `${scheme} ${role}`).toBe(expected);
  }
  const equals = trials.filter(({ equal }) => equal);
  // The trap is real: without the second proof these would have been killed. The kernel's own token never repeats.
  expect(equals.filter(({ scheme }) => scheme === 'starttime').length).toBeGreaterThan(0);
  if (probeContainment().pidfs) expect(equals.filter(({ scheme }) => scheme === 'pidfs')).toEqual([]);
});
