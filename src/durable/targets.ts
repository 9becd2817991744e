import * as fs from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory, writeAll } from './files.js';
import type { Operation } from './record.js';
import { directoriesOf } from './target.js';

const MAX_OPEN = 128;
const MAX_KNOWN_SIZES = 4096;

/** One change of a target file. Appends name the offset, so that doing one twice is doing it once. */
export type TargetChange =
  | { readonly op: 'append'; readonly target: string; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly op: 'put'; readonly target: string; readonly bytes: Uint8Array }
  | { readonly op: 'remove'; readonly target: string };

/** The change that a record of the journal stands for. @param offset of an append, in the target */
export function changeOf(op: Operation, target: string, offset: number, bytes: Uint8Array): TargetChange {
  if (op === 'append') return { op, target, offset, bytes };
  return op === 'put' ? { op, target, bytes } : { op, target };
}

/** The target files of a journal: applies changes to them and knows their sizes. Private to the journal. */
export class Targets {
  readonly #root: string;
  readonly #temporary: string;
  /** Least recently used first. */
  readonly #descriptors = new Map<string, number>();
  readonly #sizes = new Map<string, number>();

  /** @param temporary path of the file that holds the next content of a target before it is renamed */
  constructor(root: string, temporary: string) {
    this.#root = root;
    this.#temporary = temporary;
  }

  path(target: string): string {
    return join(this.#root, target);
  }

  /** Size on disk in bytes, 0 when there is none. */
  size(target: string): number {
    let size = this.#sizes.get(target);
    if (size === undefined) {
      size = fs.statSync(this.path(target), { throwIfNoEntry: false })?.size ?? 0;
      this.#remember(target, size);
    }
    return size;
  }

  /**
   * Applies changes in order. Neighbouring appends to one target become one write; appends to different targets may
   * change places, but never pass a put or a remove. A put that a later put or
   * remove of the batch replaces is not written.
   */
  apply(changes: readonly TargetChange[]): void {
    const appends = new Map<string, { offset: number; bytes: Uint8Array[] }>();
    const replaced = changes.filter((change) => change.op !== 'append');
    const last = new Map(replaced.map((change) => [change.target, change]));
    for (const change of changes) {
      if (change.op === 'put' && last.get(change.target) !== change) continue;
      if (change.op === 'append') {
        const group = appends.get(change.target);
        if (group === undefined) appends.set(change.target, { offset: change.offset, bytes: [change.bytes] });
        else group.bytes.push(change.bytes);
        continue;
      }
      this.#writeGroups(appends);
      if (change.op === 'put') this.#put(change.target, change.bytes);
      else this.#remove(change.target);
    }
    this.#writeGroups(appends);
  }

  /** Cuts a target to a size when it is longer. @returns the number of bytes cut off */
  trim(target: string, size: number): number {
    const surplus = this.size(target) - size;
    if (surplus <= 0) return 0;
    fs.truncateSync(this.path(target), size);
    this.#remember(target, size);
    return surplus;
  }

  close(): void {
    for (const fd of this.#descriptors.values()) fs.closeSync(fd);
    this.#descriptors.clear();
    this.#sizes.clear();
  }

  #writeGroups(groups: Map<string, { offset: number; bytes: Uint8Array[] }>): void {
    for (const [target, group] of groups) {
      const bytes = group.bytes.length === 1 ? (group.bytes[0] as Uint8Array) : Buffer.concat(group.bytes);
      writeAll(this.#descriptor(target), bytes, group.offset);
      this.#remember(target, Math.max(this.size(target), group.offset + bytes.length));
    }
    groups.clear();
  }

  #put(target: string, bytes: Uint8Array): void {
    this.#forgetDescriptor(target);
    // A new file is written in place: nobody knows of it yet, and a replay writes it again.
    if (!this.#create(target, bytes)) {
      fs.writeFileSync(this.#temporary, bytes, { mode: 0o600 });
      this.#withDirectory(target, (path) => fs.renameSync(this.#temporary, path));
    }
    this.#remember(target, bytes.length);
  }

  /** @returns false when the target exists */
  #create(target: string, bytes: Uint8Array): boolean {
    if (this.#sizes.get(target)) return false;
    try {
      this.#withDirectory(target, (path) => fs.writeFileSync(path, bytes, { flag: 'wx', mode: 0o600 }));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return false;
    }
  }

  #remove(target: string): void {
    this.#forgetDescriptor(target);
    fs.rmSync(this.path(target), { force: true });
    this.#remember(target, 0);
  }

  #descriptor(target: string): number {
    let fd = this.#descriptors.get(target);
    if (fd === undefined) {
      const flags = fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW;
      fd = this.#withDirectory(target, (path) => fs.openSync(path, flags, 0o600));
      const oldest = this.#descriptors.size < MAX_OPEN ? undefined : this.#descriptors.keys().next().value;
      if (oldest !== undefined) this.#forgetDescriptor(oldest);
    } else {
      this.#descriptors.delete(target);
    }
    this.#descriptors.set(target, fd);
    return fd;
  }

  #forgetDescriptor(target: string): void {
    const fd = this.#descriptors.get(target);
    if (fd === undefined) return;
    this.#descriptors.delete(target);
    fs.closeSync(fd);
  }

  #remember(target: string, size: number): void {
    this.#sizes.delete(target);
    this.#sizes.set(target, size);
    const oldest = this.#sizes.size <= MAX_KNOWN_SIZES ? undefined : this.#sizes.keys().next().value;
    if (oldest !== undefined) this.#sizes.delete(oldest);
  }

  #withDirectory<T>(target: string, act: (path: string) => T): T {
    const path = this.path(target);
    try {
      return act(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      return act(path);
    }
  }
}

/** fsync of the named targets and of every directory that leads to them. A target that is gone needs none. */
export async function syncTargets(root: string, targets: Iterable<string>): Promise<void> {
  const directories = new Set<string>();
  for (const target of targets) {
    for (const directory of directoriesOf(target)) directories.add(directory);
    await ignoreMissing(async () => {
      const handle = await open(join(root, target), 'r');
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    });
  }
  for (const directory of directories) await ignoreMissing(() => syncDirectory(join(root, directory)));
}

async function ignoreMissing(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
