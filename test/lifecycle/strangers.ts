import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import { type LeaseRecord, newRecord } from '../../src/lifecycle/lease-record.js';
import { identify } from '../../src/native/identity.js';
import { OPERATION } from './support.js';

export const LEASE = '0123456789abcdef'.repeat(2);
/** A process that no lease ever owned, though it bears the mark of one: only a start time needs that. */
export class Stranger implements AsyncDisposable {
  readonly #process: ChildProcess = spawn('/bin/sleep', ['600'], {
    env: { BRIDLE_LEASE: LEASE },
    stdio: 'ignore',
  });
  readonly #exit = once(this.#process, 'exit');

  get identity(): ProcessIdentity {
    const identity = identify(this.#process.pid ?? 0);
    if (!identity) throw new Error('the stranger is gone');
    return identity;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exit;
  }
}

/** Of a process that has ended. */
export async function deadIdentity(): Promise<ProcessIdentity> {
  const stranger = new Stranger();
  const { identity } = stranger;
  await stranger[Symbol.asyncDispose]();
  return identity;
}

export function withOtherToken(identity: ProcessIdentity): ProcessIdentity {
  return { ...identity, token: `${identity.token}1` };
}

/** The record of a lease whose processes are gone, but for what is changed. */
export async function recordOf(change: Partial<LeaseRecord> = {}): Promise<LeaseRecord> {
  const [owner, supervisor, child] = await Promise.all([deadIdentity(), deadIdentity(), deadIdentity()]);
  return {
    ...newRecord(
      LEASE,
      OPERATION,
      { owner, supervisor, reaper: null, child },
      { kind: 'subreaper', processGroup: child.pid, limits: [] },
    ),
    ...change,
  };
}
