import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureWindowsNode, windowsNodeVersions } from '../../../scripts/full/windows-nodes.mjs';
import type { ProcessIdentity } from '../../../src/contract/identity.js';
import { leaseRecordSchema } from '../../../src/lifecycle/lease-record.js';
import { type ScenarioOptions, Wine } from './wine.js';

let wine: Wine;

beforeAll(async () => {
  wine = await Wine.start();
});

afterAll(async () => {
  await wine[Symbol.asyncDispose]();
});

const ENDED = { code: null, signal: 9 };

/** What Wine puts into every environment. */
const WINE_VARIABLE = /^(WINE\w*|SystemDrive)=/;

describe.each(windowsNodeVersions)('node.exe %s', (version) => {
  let node: string;

  beforeAll(async () => {
    node = await ensureWindowsNode(version);
    await resultOf('settle');
  });

  /** The result of a scenario that ends well. Scenarios are not typed: what they report is only compared. */
  async function resultOf<T>(scenario: string, options: ScenarioOptions = {}, program = node): Promise<T> {
    const { code, result, output } = await wine.run(program, scenario, options);
    expect(code, output).toBe(0);
    return result as T;
  }

  it('LC-80 a child is assigned before it runs, is resumed once, and ends when the job closes', async () => {
    const result = await resultOf<{ pid: number }>('hold');
    const refused = { code: 'WIN32_5023', step: 'resume' };
    expect(result).toMatchObject({
      created: { inJob: [], active: 1, same: true },
      resumedTooEarly: refused,
      assigned: { inJob: [result.pid], active: 1 },
      ranSuspended: false,
      resumedTwice: refused,
      lives: true,
    });
  });

  it('LC-81 LC-85 a child gets what was named and nothing else, in a job that it cannot leave', async () => {
    const result = await resultOf<{ wanted: string[]; environment: string[]; directory: string[] }>('launch');
    expect(result).toMatchObject({
      got: result.wanted,
      directory: [expect.stringMatching(/^Z:\\.*\\run-\d+$/)],
      helperExit: { code: 7, signal: null },
      echo: { returned: 3_000_000, counted: 3_000_000, exit: { code: 5, signal: null } },
      pipes: '3',
      job: 'in a job',
      breakaway: 'denied',
    });
    const environment = result.environment.filter((entry) => !WINE_VARIABLE.test(entry));
    expect(environment.sort()).toEqual(['Alpha=ä b', 'SystemRoot=C:\\windows', '_x=', 'zeta=1']);
  });

  it('LC-82 LC-88 closing a lease ends every process of its job, a detached grandchild too', async () => {
    const result = await resultOf<{ owner: object; closed: { record: object; childToken: string; pid: number } }>(
      'terminate',
    );
    const { owner, closed } = result;
    expect(closed).toMatchObject({
      before: [true, true],
      cleanup: { empty: true },
      after: [false, false],
      exit: ENDED,
    });
    const record = leaseRecordSchema.parse(closed.record);
    expect(record).toMatchObject({ owner, supervisor: owner, reaper: null, boundary: { kind: 'job' }, state: 'owned' });
    expect(record.child).toEqual({ pid: closed.pid, token: closed.childToken, scheme: 'creationtime' });
    expect(record.child.token).toMatch(/^utc:\d{18}$/);
    expect(result).toMatchObject({
      afterExit: { exit: { code: 0, signal: null }, before: true, after: false, cleanup: { empty: true } },
      active: 0,
      records: [],
    });
  });

  /** Lets a daemon die, and looks with another one at what it left. */
  async function die(step: string, manner: string): Promise<{ started: number; next: unknown }> {
    const { result, folder, output } = await wine.run(node, 'die', { args: [step, manner] });
    const { started, owner } = result as { started: ProcessIdentity[]; owner: ProcessIdentity };
    expect(started.length, output).toBeGreaterThan(0);
    const next = await resultOf('look', { folder, args: [JSON.stringify([...started, owner])] });
    return { started: started.length, next };
  }

  const NO_RECORD = { living: [], found: [], outcomes: [], left: 0 };
  const RECOVERED = {
    living: [],
    found: [{ state: 'owned', boundary: { kind: 'job' }, reaper: null }],
    outcomes: ['completed'],
    left: 0,
  };

  it.each([
    ['spawned', NO_RECORD],
    ['held', NO_RECORD],
    ['recorded', RECOVERED],
    ['released', RECOVERED],
    ['started', RECOVERED],
  ])('LC-83 LC-86 a daemon that is killed at the step %s leaves no process', async (step, expected) => {
    expect((await die(step, 'kill')).next).toEqual(expected);
  });

  it.each(['kill', 'exit'])('LC-83 LC-86 a detached grandchild does not outlive its daemon (%s)', async (manner) => {
    const { started, next } = await die('run', manner);
    expect(started).toBeGreaterThanOrEqual(2);
    expect(next).toEqual(RECOVERED);
  });

  it('LC-83 LC-86 another process of the daemon, which inherits handles and outlives it, keeps no job alive', async () => {
    const { result, folder, output } = await wine.run(node, 'bystander');
    const { started, owner, bystander } = result as Record<'owner' | 'bystander', object> & { started: object[] };
    expect(started.length, output).toBeGreaterThanOrEqual(2);
    const args = [JSON.stringify([...started, owner]), JSON.stringify(bystander)];
    expect(await resultOf('look', { folder, args })).toEqual({ ...RECOVERED, bystander: true });
  });

  it('LC-83 a detached grandchild does not outlive the JavaScript worker that started it', async () => {
    expect(await resultOf('worker')).toEqual({ before: [true, true] });
  });

  it('LC-84 a failed assignment fails the start and leaves no process', async () => {
    expect(await resultOf('assign')).toEqual({
      victims: 1,
      error: { code: 'SPAWN_FAILED', message: 'assign: EACCES' },
      left: [],
      records: [],
      active: 0,
    });
  });

  it('LC-86 LC-88 recovery looks at processes and never ends one', async () => {
    const result = await resultOf('recover');
    const completed = { outcome: 'completed', evidence: [], state: null, alive: true };
    expect(result).toMatchObject({
      bothGone: completed,
      ownerReused: completed,
      earlierBoot: completed,
      childReused: {
        outcome: 'recovery_blocked',
        evidence: ['identity_mismatch'],
        state: 'recovery_blocked',
        alive: true,
      },
      childLives: {
        outcome: 'cleanup_failed',
        evidence: ['boundary_not_empty'],
        state: 'cleanup_failed',
        alive: true,
      },
      ownerLives: { outcome: 'left', evidence: [], state: 'owned', alive: true },
      afterEnd: null,
    });
  });

  it('LC-87 what Windows cannot do, or cannot start, is refused and leaves no process', async () => {
    const unsupported = { code: 'PLATFORM_UNSUPPORTED' };
    const failed = (message: RegExp): object => ({ code: 'SPAWN_FAILED', message: expect.stringMatching(message) });
    expect(await resultOf('refuse')).toMatchObject({
      unsupported: {
        terminal: unsupported,
        credentials: unsupported,
        rlimits: unsupported,
        noNewPrivileges: unsupported,
        paths: unsupported,
      },
      refused: {
        missing: failed(/^exec: ENOENT/),
        directory: failed(/^chdir: ENOTDIR/),
        batch: failed(/^spec: a batch file/),
        twice: failed(/^spec: .* NAME twice/),
      },
      notEnforced: [{ wish: 'memoryBytes' }, { wish: 'cpus' }],
      strength: { kind: 'job', weakness: null, birthToken: 'creationtime', landlock: null, limits: [] },
      left: [],
      records: [],
    });
  });

  it('LC-89 the addon loads in a node.exe of another name', async () => {
    const renamed = join(wine.folder(), 'other.exe');
    copyFileSync(node, renamed);
    expect(await resultOf('hold', {}, renamed)).toMatchObject({ ranSuspended: false, lives: true });
  });
});
