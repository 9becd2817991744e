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
import { identify } from '../../src/native/identity.js';
import { signalProcess } from '../../src/native/process.js';
import { isAlive, SIGKILL, untilGone, writtenIdentity } from './support.js';

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

  /** SIGKILL to the daemon; with `supervisor`, to its supervisor in the same instant. */
  async kill(options: { supervisor: boolean }): Promise<void> {
    const gone = once(this.#process, 'exit');
    // The daemon is stopped first, so that it cannot act on the death of its supervisor.
    this.#process.kill('SIGSTOP');
    if (options.supervisor) signalProcess(this.record.supervisor, SIGKILL);
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
    if (this.#record && identify(this.#record.supervisor.pid)) await untilGone(this.#record.supervisor);
    rmSync(this.directory, { recursive: true, force: true });
  }
}
