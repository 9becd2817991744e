import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { ProcessIdentity } from '../../src/contract/identity.js';
import { Journal } from '../../src/durable/journal.js';
import { JournalLeaseStore } from '../../src/lifecycle/journal-lease-store.js';
import { type LeaseRecord, leaseRecordSchema } from '../../src/lifecycle/lease-record.js';
import { Lifecycle, type LifecycleOptions, type RecoveredLease } from '../../src/lifecycle/lifecycle.js';
import { signalProcess } from '../../src/native/process.js';
import { isAlive, SIGKILL, untilGone, writtenIdentity } from './support.js';

const SIGSTOP = 19;

export const DIST = process.env['BRIDLE_DIST_DIR'] ?? resolve(import.meta.dirname, '../../dist');

/**
 * A daemon in a process of its own that runs one script with the real journal. Disposing kills whatever is left of it.
 */
export class FakeDaemon implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'lifecycle-'));
  readonly #process: ChildProcess;
  readonly #known: ProcessIdentity[] = [];
  #record: LeaseRecord | undefined;

  private constructor(script: string, options: Partial<LifecycleOptions>) {
    const program = join(import.meta.dirname, 'fixtures/daemon.mjs');
    const argv = [program, this.directory, JSON.stringify(options), script];
    this.#process = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  static async start(script: string, options: Partial<LifecycleOptions>): Promise<FakeDaemon> {
    const daemon = new FakeDaemon(script, options);
    await daemon.#ready();
    return daemon;
  }

  async #ready(): Promise<void> {
    const lines = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream });
    const [line] = (await once(lines, 'line')) as [string];
    const { lease } = JSON.parse(line) as { lease: string };
    this.#record = leaseRecordSchema.parse(JSON.parse(readFileSync(this.recordPath(lease), 'utf8')));
  }

  get record(): LeaseRecord {
    if (!this.#record) throw new Error('not started');
    return this.#record;
  }

  recordPath(lease = this.record.id): string {
    return join(this.directory, 'leases', `${lease}.json`);
  }

  /** A descendant that wrote its process id. It is killed at the end if it still lives. */
  async identityOf(name: string): Promise<ProcessIdentity> {
    const identity = await writtenIdentity(this.directory, name);
    this.#known.push(identity);
    return identity;
  }

  /** SIGKILL to the daemon, and to its supervisor and reaper in the same instant where they are named. */
  async kill(options: { supervisor: boolean; reaper?: boolean }): Promise<void> {
    const gone = once(this.#process, 'exit');
    // Stopped first, so that nobody can act on the death of another.
    this.#process.kill('SIGSTOP');
    const { id, supervisor, reaper } = this.record;
    const proof = { lease: id, cgroup: '' };
    if (options.reaper && reaper) {
      signalProcess(supervisor, SIGSTOP, proof);
      signalProcess(reaper, SIGKILL, proof);
    }
    if (options.supervisor) signalProcess(supervisor, SIGKILL, proof);
    this.#process.kill('SIGKILL');
    await gone;
  }

  /** What the next daemon of this state directory makes of the records. */
  async recover(options: Partial<LifecycleOptions> = {}): Promise<RecoveredLease[]> {
    await using journal = await Journal.open(this.directory);
    const store = new JournalLeaseStore(journal);
    return await new Lifecycle({ stateDir: this.directory, store, ...options }).recover();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      await this.kill({ supervisor: false });
    }
    for (const identity of this.#known) {
      if (isAlive(identity)) signalProcess(identity, SIGKILL);
      await untilGone(identity);
    }
    for (const identity of [this.#record?.supervisor, this.#record?.reaper]) if (identity) await untilGone(identity);
    rmSync(this.directory, { recursive: true, force: true });
  }
}
