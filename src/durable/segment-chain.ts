import { rm, unlink } from 'node:fs/promises';
import { syncDirectory } from './files.js';
import { Segment } from './segment.js';
import { syncTargets } from './targets.js';

/**
 * The segments of an open journal: the one that is written, the next one made ahead so that no append waits for it,
 * and full ones that are deleted, oldest first, once their targets are on disk. Private to the journal.
 */
export class SegmentChain {
  readonly #root: string;
  readonly #folder: string;
  readonly #limit: number;
  readonly #onError: (error: unknown) => void;
  readonly #full: Segment[] = [];
  #current: Segment;
  #next: Segment | undefined;
  #preparing: Promise<void> | undefined;
  #retiring: Promise<void> | undefined;
  /** Last record that is in its targets. */
  #appliedLsn = 0;
  #syncs = 0;
  #rotations = 0;

  private constructor(root: string, folder: string, limit: number, first: Segment, onError: (error: unknown) => void) {
    this.#root = root;
    this.#folder = folder;
    this.#limit = limit;
    this.#current = first;
    this.#onError = onError;
  }

  /** @param onError told about failures of the work in the background */
  static async start(
    root: string,
    folder: string,
    limit: number,
    onError: (error: unknown) => void,
  ): Promise<SegmentChain> {
    return new SegmentChain(root, folder, limit, await Segment.create(folder, 1, limit), onError);
  }

  get current(): Segment {
    return this.#current;
  }

  get stats(): { readonly fdatasyncs: number; readonly rotations: number; readonly segments: number } {
    return { fdatasyncs: this.#syncs, rotations: this.#rotations, segments: this.#full.length + 1 };
  }

  /** Writes records to the current segment; afterwards another one may be current. */
  write(bytes: Uint8Array, lastLsn: number): void {
    this.#current.write(bytes, lastLsn);
    if (this.#current.size >= this.#limit && this.#next !== undefined) {
      this.#full.push(this.#current);
      this.#current = this.#next;
      this.#next = undefined;
      this.#rotations++;
    } else if (this.#current.size >= this.#limit / 2 && this.#next === undefined) {
      this.#preparing ??= this.#prepare(this.#current.number + 1);
    }
  }

  /** fdatasync of everything written before the call, older segments first. */
  async sync(): Promise<void> {
    for (const segment of [...this.#full, this.#current]) {
      if (segment.synced) continue;
      this.#syncs++;
      await segment.sync();
    }
  }

  /** Starts deleting the full segments whose records are all applied. */
  retire(appliedLsn: number): void {
    this.#appliedLsn = appliedLsn;
    if (this.#oldestApplied() !== undefined) this.#retiring ??= this.#checkpoint();
  }

  /** Puts all targets on disk and leaves one segment without records. Everything written must be applied. */
  async empty(appliedLsn: number): Promise<void> {
    this.#appliedLsn = appliedLsn;
    await this.#preparing;
    await this.#retiring;
    await this.#deleteFull();
    await syncTargets(this.#root, this.#current.dirty);
    await this.#current.clear();
    if (this.#next !== undefined) await rm(this.#next.path);
  }

  /** Waits for the work in the background, then closes the descriptors. */
  async close(): Promise<void> {
    await this.#preparing;
    await this.#retiring;
    for (const segment of [...this.#full, this.#current, this.#next]) segment?.close();
  }

  async #prepare(number: number): Promise<void> {
    try {
      this.#next = await Segment.create(this.#folder, number, this.#limit);
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#preparing = undefined;
    }
  }

  async #checkpoint(): Promise<void> {
    try {
      await this.#deleteFull();
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#retiring = undefined;
    }
  }

  #oldestApplied(): Segment | undefined {
    const oldest = this.#full[0];
    return oldest !== undefined && oldest.lastLsn <= this.#appliedLsn ? oldest : undefined;
  }

  async #deleteFull(): Promise<void> {
    for (let oldest = this.#oldestApplied(); oldest !== undefined; oldest = this.#oldestApplied()) {
      await syncTargets(this.#root, oldest.dirty);
      await unlink(oldest.path);
      // One after the other: what a crash leaves is always the newer end of the journal.
      await syncDirectory(this.#folder);
      this.#full.shift();
      oldest.close();
    }
  }
}
