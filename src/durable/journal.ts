import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BridleError } from '../contract/errors.js';
import { type Deferred, defer } from './deferred.js';
import { syncDirectory, unwritable } from './files.js';
import { encodeRecord, type Operation } from './record.js';
import { type Recovery, recover } from './recovery.js';
import type { Segment } from './segment.js';
import { SegmentChain } from './segment-chain.js';
import { checkTarget } from './target.js';
import { changeOf, type TargetChange, Targets } from './targets.js';

export interface AppendOptions {
  /** Hand the record to the kernel before returning: it then survives the death of this process. */
  readonly now?: boolean;
}

export interface JournalOptions {
  /** A segment that reached this many bytes is followed by the next one. Default 32 MiB. */
  readonly segmentBytes?: number;
}

export interface JournalStats {
  readonly records: number;
  readonly bytes: number;
  /** write(2) calls to segments. */
  readonly writes: number;
  /** fdatasync(2) calls of the group commit. */
  readonly fdatasyncs: number;
  readonly batches: number;
  readonly rotations: number;
  /** Segment files that are not checkpointed yet, the current one included. */
  readonly segments: number;
}

interface PendingRecord {
  readonly lsn: number;
  readonly segment: Segment;
  readonly changes: readonly TargetChange[];
}

const DEFAULT_SEGMENT_BYTES = 32 * 1024 * 1024;
/** Buffered records are written at the latest when they are this many bytes. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** Changes applied before the event loop gets a turn. */
const APPLY_SLICE = 256;
/**
 * Time that targets may lag behind when callers wait for the disk alone. What is replaced or removed meanwhile is never
 * written: most leases end so soon that their record is not worth a file.
 */
const APPLY_DELAY_MS = 20;

/**
 * The one redo journal of a state directory. Every durable fact is a record here first; the files that people read
 * ("targets", paths relative to the state directory) change only after the record is on disk.
 *
 * append, put and remove are synchronous and take effect in call order. They throw STATE_UNWRITABLE once the journal
 * failed (no space, I/O error): from then on nothing is acknowledged any more, and only a new start, which replays,
 * goes on. A failed fdatasync is never repeated: the kernel may have dropped the pages it could not write.
 */
export class Journal {
  readonly directory: string;
  readonly recovered: Recovery;
  readonly #targets: Targets;
  readonly #segments: SegmentChain;
  readonly #listeners = new Set<(targets: ReadonlySet<string>) => void>();
  readonly #failureListeners = new Set<(failure: BridleError) => void>();
  /** Sizes of targets with records that are not applied yet. */
  readonly #logical = new Map<string, { size: number; pending: number }>();
  readonly #counts = { records: 0, bytes: 0, writes: 0, batches: 0 };
  #buffer: Buffer[] = [];
  #buffered = 0;
  #pending: PendingRecord[] = [];
  #lsn = 0;
  #syncedLsn = 0;
  #batchLsn = 0;
  #appliedLsn = 0;
  /** Waiters of the batch on its way to the disk, and of the records that gather meanwhile. */
  #running: Deferred | undefined;
  #gathering: Deferred | undefined;
  #runningSync: Deferred | undefined;
  /** Ends the wait of the commit for targets that may lag behind. */
  #wake: (() => void) | undefined;
  /** Until when the targets may lag behind, by performance.now(). */
  #applyBy = 0;
  #gatheringSync: Deferred | undefined;
  #committing = false;
  #failure: BridleError | undefined;
  #closing: Promise<void> | undefined;

  private constructor(directory: string, recovered: Recovery, targets: Targets, segments: SegmentChain) {
    this.directory = directory;
    this.recovered = recovered;
    this.#targets = targets;
    this.#segments = segments;
  }

  /**
   * Opens the journal under `directory` (a state directory whose lock is held), replays what an earlier process left
   * into the targets, and starts a fresh segment. Read targets only after this.
   * @throws BridleError STATE_CORRUPT when acknowledged records are damaged, STATE_UNWRITABLE on I/O errors
   */
  static async open(directory: string, options: JournalOptions = {}): Promise<Journal> {
    const folder = join(directory, 'journal');
    const temporary = join(folder, 'put.tmp');
    const targets = new Targets(directory, temporary);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await rm(temporary, { force: true });
      const recovered = await recover(directory, folder, targets);
      const limit = options.segmentBytes ?? DEFAULT_SEGMENT_BYTES;
      const segments = await SegmentChain.start(directory, folder, limit, (error) => journal.#fail(error));
      const journal = new Journal(directory, recovered, targets, segments);
      await syncDirectory(directory);
      return journal;
    } catch (error) {
      targets.close();
      throw unwritable(folder, error);
    }
  }

  /** Set once the journal failed. */
  get failure(): BridleError | undefined {
    return this.#failure;
  }

  /**
   * Adds bytes to the end of a target, or of several (at most 4) in one record: then all of them get the bytes or none.
   * @param bytes at most 32 MiB; copied before this returns
   * @returns the offset at which they will stand (in the first target)
   */
  append(target: string | readonly string[], bytes: Uint8Array | string, options: AppendOptions = {}): number {
    return this.#add('append', typeof target === 'string' ? [target] : target, bytes, options);
  }

  /** Replaces the whole content of a target; readers see the old or the new content, never a mixture. */
  put(target: string, bytes: Uint8Array | string, options: AppendOptions = {}): void {
    this.#add('put', [target], bytes, options);
  }

  /** Removes a target; nothing happens when there is none. */
  remove(target: string, options: AppendOptions = {}): void {
    this.#add('remove', [target], '', options);
  }

  /** Writes everything appended so far to the segment: it survives the death of this process on return. */
  flushNow(): void {
    this.#check();
    this.#flush();
  }

  /** Resolves when everything appended before the call is on disk and visible in its targets. */
  async durable(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#lsn > this.#batchLsn) {
      this.#gathering ??= defer();
      return this.#gathering.promise;
    }
    if (this.#batchLsn > this.#appliedLsn) {
      this.#running ??= defer();
      this.#wake?.();
      return this.#running.promise;
    }
  }

  /** Resolves when everything appended before the call is on disk. Its targets show it a little later. */
  async synced(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#lsn > this.#batchLsn) {
      this.#gatheringSync ??= defer();
      return this.#gatheringSync.promise;
    }
    if (this.#batchLsn > this.#syncedLsn) {
      this.#runningSync ??= defer();
      return this.#runningSync.promise;
    }
  }

  /** Size of a target in bytes, appends that are not visible yet included; 0 when there is none. */
  size(target: string): number {
    const logical = this.#logical.get(target);
    if (logical !== undefined) return logical.size;
    checkTarget(target);
    return this.#targets.size(target);
  }

  /** Absolute path of a target. */
  path(target: string): string {
    return this.#targets.path(target);
  }

  /**
   * Called after each batch with the targets that changed, before durable() of that batch resolves.
   * @returns function that ends the subscription
   */
  onApplied(listener: (targets: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called at most once, when the journal fails. @returns function that ends the subscription */
  onFailed(listener: (failure: BridleError) => void): () => void {
    this.#failureListeners.add(listener);
    return () => this.#failureListeners.delete(listener);
  }

  stats(): JournalStats {
    return { ...this.#counts, ...this.#segments.stats };
  }

  /** Makes everything durable, checkpoints the targets and leaves one empty segment. A failed journal is only closed. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(): Promise<void> {
    try {
      if (this.#failure === undefined) {
        await this.durable();
        await this.#segments.empty(this.#appliedLsn);
      }
    } finally {
      await this.#segments.close();
      this.#targets.close();
    }
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closing !== undefined) throw new BridleError('SHUTTING_DOWN', 'the journal is closed');
  }

  #add(op: Operation, targets: readonly string[], bytes: Uint8Array | string, options: AppendOptions): number {
    this.#check();
    const payload = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const to = targets.map((target) => [target, op === 'append' ? this.size(target) : this.#checked(target)] as const);
    const lsn = this.#lsn + 1;
    const segment = this.#segments.current;
    const record = encodeRecord({ op, to, lsn, synced: this.#syncedLsn }, payload, segment.seed);
    const own = record.subarray(record.length - 1 - payload.length, record.length - 1);
    this.#lsn = lsn;
    this.#counts.records++;
    for (const [target, offset] of to) this.#resize(target, offset + payload.length);
    const changes = to.map(([target, offset]) => changeOf(op, target, offset, own));
    this.#pending.push({ lsn, segment, changes });
    this.#buffer.push(record);
    this.#buffered += record.length;
    if (options.now === true || this.#buffered >= MAX_BUFFERED_BYTES) this.#flush();
    if (!this.#committing) {
      this.#committing = true;
      setImmediate(() => void this.#commit());
    }
    this.#wake?.();
    return to[0]?.[1] ?? 0;
  }

  #flush(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#buffer.length === 0) return;
    const bytes = this.#buffer.length === 1 ? (this.#buffer[0] as Buffer) : Buffer.concat(this.#buffer, this.#buffered);
    try {
      this.#segments.write(bytes, this.#lsn);
    } catch (error) {
      throw this.#fail(error);
    }
    this.#buffer = [];
    this.#buffered = 0;
    this.#counts.writes++;
    this.#counts.bytes += bytes.length;
  }

  #checked(target: string): 0 {
    checkTarget(target);
    return 0;
  }

  #resize(target: string, size: number): void {
    const logical = this.#logical.get(target);
    if (logical === undefined) {
      this.#logical.set(target, { size, pending: 1 });
    } else {
      logical.size = size;
      logical.pending++;
    }
  }

  /** Takes batch after batch to the disk and to the targets until nothing is left. */
  async #commit(): Promise<void> {
    try {
      while (this.#lsn > this.#appliedLsn) {
        if (this.#applyIsDue()) {
          await this.#apply();
          // Whoever was just told gets to append before the next batch is closed: one fdatasync then serves all of them.
          await nextTurn();
        } else if (this.#lsn > this.#syncedLsn) {
          await this.#sync();
        } else {
          await this.#lag();
        }
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#committing = false;
    }
  }

  /** Whether what is on disk must go to the targets now: somebody waits for them, or they lagged behind long enough. */
  #applyIsDue(): boolean {
    if (this.#syncedLsn === this.#appliedLsn) return false;
    if (this.#running !== undefined || this.#pending.length > APPLY_SLICE) return true;
    return performance.now() >= this.#applyBy;
  }

  /** Takes one batch to the disk. Records that come meanwhile make the next one. */
  async #sync(): Promise<void> {
    const behind = this.#syncedLsn > this.#appliedLsn;
    this.#flush();
    this.#batchLsn = this.#lsn;
    this.#running = this.#gathering;
    this.#gathering = undefined;
    this.#runningSync = this.#gatheringSync;
    this.#gatheringSync = undefined;
    await this.#segments.sync();
    this.#syncedLsn = this.#batchLsn;
    this.#counts.batches++;
    if (this.#runningSync === undefined) return;
    if (!behind) this.#applyBy = performance.now() + APPLY_DELAY_MS;
    this.#runningSync.resolve();
    this.#runningSync = undefined;
    // Who waits for the disk alone goes on before the targets are written.
    await nextTurn();
  }

  /** Waits until somebody wants something of the journal, or the targets have lagged behind for long enough. */
  async #lag(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, this.#applyBy - performance.now());
    });
    clearTimeout(timer);
    this.#wake = undefined;
    // Whoever woke us gets to append the rest of what belongs together.
    await nextTurn();
  }

  async #apply(): Promise<void> {
    const end = this.#pending.findIndex((record) => record.lsn > this.#batchLsn);
    const batch = end < 0 ? this.#pending : this.#pending.slice(0, end);
    this.#pending = end < 0 ? [] : this.#pending.slice(end);
    const changed = new Set<string>();
    for (let from = 0; from < batch.length; from += APPLY_SLICE) {
      if (from > 0) await nextTurn();
      const slice = batch.slice(from, from + APPLY_SLICE);
      this.#targets.apply(slice.flatMap((record) => record.changes));
      for (const { segment, changes } of slice) {
        for (const { target } of changes) {
          changed.add(target);
          segment.dirty.add(target);
          this.#settle(target);
        }
      }
    }
    this.#appliedLsn = this.#batchLsn;
    this.#running?.resolve();
    this.#running = undefined;
    this.#segments.retire(this.#appliedLsn);
    // A listener that throws is an uncaught exception of its own, not a failure of the journal.
    for (const listener of this.#listeners) queueMicrotask(() => listener(changed));
  }

  #settle(target: string): void {
    const logical = this.#logical.get(target);
    if (logical !== undefined && --logical.pending === 0) this.#logical.delete(target);
  }

  #fail(error: unknown): BridleError {
    if (this.#failure !== undefined) return this.#failure;
    const failure = unwritable(this.directory, error);
    this.#failure = failure;
    this.#buffer = [];
    this.#buffered = 0;
    this.#pending = [];
    this.#running?.reject(failure);
    this.#gathering?.reject(failure);
    this.#runningSync?.reject(failure);
    this.#gatheringSync?.reject(failure);
    for (const listener of this.#failureListeners) queueMicrotask(() => listener(failure));
    return failure;
  }
}
