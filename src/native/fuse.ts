import { nativeExports } from './addon.js';

interface FuseExports {
  openConnection(mountpoint: string, source: string, allowOther: boolean): Connection;
  serve(options: MountOptions): FuseSession;
  unmount(mountpoint: string, lazy: boolean): void;
  listFuseMounts(): readonly MountEntry[];
}

const addon = nativeExports<FuseExports>();

/**
 * Inode numbers are persistent: `serial << 8 | slot`, where the serial was given to the object once and is stored with
 * it, and the slot names the file inside the object (src/mount/inodes.ts). Below 2^53, so a number is exact. Files that
 * clients make in an inbox get their number from the backing file, with the top bit set; JavaScript never sees those.
 */
export type Inode = number;

export const ROOT_INODE: Inode = 1;

interface NodeBase {
  readonly inode: Inode;
  /** Permission bits, 0o000 to 0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Milliseconds since the epoch; mtime and ctime. */
  readonly time: number;
}

export type Node =
  | (NodeBase & { readonly kind: 'directory' })
  /** An immutable version: a reader that opened it keeps that version. */
  | (NodeBase & { readonly kind: 'bytes'; readonly bytes: Uint8Array })
  /** Read-only view of a backing file that grows or is replaced; size and time are the backing file's. */
  | (NodeBase & { readonly kind: 'file'; readonly path: string })
  /** The same backing file as a stream of rows: a read at its end waits for the next one. */
  | (NodeBase & { readonly kind: 'follow'; readonly path: string })
  /** Hand-off directory over a backing directory: clients create files in it and rename them to `*.req.json`. */
  | (NodeBase & { readonly kind: 'inbox'; readonly path: string })
  /** A small text: reads are answered from `bytes`, a write is put to JavaScript. */
  | (NodeBase & { readonly kind: 'control'; readonly bytes: Uint8Array });

export type Change =
  /** Adds or replaces. When the name exists with the same inode its content and attributes are replaced. */
  | { readonly op: 'put'; readonly parent: Inode; readonly name: string; readonly node: Node }
  | { readonly op: 'remove'; readonly parent: Inode; readonly name: string }
  /** The backing file of a `follow` node grew: who waits for it reads on. */
  | { readonly op: 'grow'; readonly inode: Inode }
  /** Remove a handed-in request from an inbox, backing file included. */
  | { readonly op: 'consume'; readonly parent: Inode; readonly name: string };

/** A request that only JavaScript can answer. Answer each token exactly once, with 0 or a positive errno. */
export type MountRequest = {
  readonly token: number;
  readonly uid: number;
  readonly gid: number;
  /** Process id of the caller (mapped from the thread id that the kernel gives); 0 when unknown. */
  readonly pid: number;
} & (
  | {
      /** rename of `temporary` to `name` (which ends in .req.json) inside the inbox. */
      readonly op: 'handoff';
      readonly inbox: Inode;
      readonly temporary: string;
      readonly name: string;
      /** Content, at most MAX_REQUEST_BYTES; null when it is larger. */
      readonly bytes: Uint8Array | null;
    }
  | { readonly op: 'mkdir'; readonly parent: Inode; readonly name: string; readonly mode: number }
  /** One whole write at offset 0 to a control; at most MAX_CONTROL_BYTES (larger is EMSGSIZE in C++). */
  | { readonly op: 'control'; readonly inode: Inode; readonly bytes: Uint8Array }
  /** fsync of an inbox directory or of a file in it: answer when all that was accepted before is on disk. */
  | { readonly op: 'fsync'; readonly inbox: Inode }
);

export interface MountOptions {
  readonly mountpoint: string;
  /** An open /dev/fuse descriptor of a mounted connection: see openConnection. */
  readonly fd: number;
  readonly root: Node;
  /** Kernel cache time of entries and attributes in milliseconds; invalidation is explicit. Default 3 600 000. */
  readonly cacheMs?: number;
  /** Deadline of a request put to JavaScript, milliseconds; then it is answered ETIMEDOUT. Default 30 000. */
  readonly deadlineMs?: number;
  /** Requests waiting for JavaScript at once; one more is answered EAGAIN. Default 1024. */
  readonly maxPending?: number;
  /** Called on the JavaScript thread, one call per request. */
  readonly onRequest: (request: MountRequest) => void;
  /** The kernel interrupted it (the caller got a signal), or its deadline passed: it is answered already. */
  readonly onAbort: (token: number) => void;
  /** The connection ended: somebody unmounted it, or it was aborted. Called once, not after stop(). */
  readonly onEnd: () => void;
}

export interface FuseStats {
  readonly requests: number;
  readonly handedToJs: number;
  /** Reads of `follow` files that wait for the next row. */
  readonly following: number;
  readonly nodes: number;
  readonly threads: number;
  /** CLOCK_MONOTONIC milliseconds of the last request that a session thread answered. */
  readonly lastAnswer: number;
}

export interface FuseSession {
  /** Applies all changes under one lock, then invalidates kernel caches from the notification thread. */
  publish(changes: readonly Change[]): void;
  /** @returns false when the token was answered already (deadline, interrupt). */
  answer(token: number, errno: number): boolean;
  stats(): FuseStats;
  /** Ends the threads and closes the descriptor. The mount itself is removed by unmount(). */
  stop(): Promise<void>;
}

export interface Connection {
  readonly fd: number;
}

/**
 * Makes a mount and returns its descriptor: mount(2) when privileged, else fusermount3.
 * @param source shown in /proc/self/mountinfo as the mount source, type `fuse.bridle`
 * @throws Error with `code` (errno name) and a message that names the step
 */
export function openConnection(mountpoint: string, options: { source: string; allowOther: boolean }): Connection {
  return addon.openConnection(mountpoint, options.source, options.allowOther);
}

/** Serves a mounted connection on native threads. INIT is answered when this returns. */
export function serve(options: MountOptions): FuseSession {
  return addon.serve(options);
}

/** umount(2), or fusermount3 -u for a user; `lazy` detaches a busy or dead mount. */
export function unmount(mountpoint: string, options: { lazy: boolean }): void {
  addon.unmount(mountpoint, options.lazy);
}

export interface MountEntry {
  readonly mountpoint: string;
  readonly type: string;
  readonly source: string;
  /** Number of the connection under /sys/fs/fuse/connections: the minor of the mount's device. */
  readonly connection: number;
}

/** FUSE mounts of this mount namespace, from /proc/self/mountinfo; never touches the mounts themselves. */
export function listFuseMounts(): readonly MountEntry[] {
  return addon.listFuseMounts();
}
