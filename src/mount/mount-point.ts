import { constants } from 'node:fs';
import { access, mkdir, readdir } from 'node:fs/promises';
import { BridleError } from '../contract/errors.js';
import { listFuseMounts, openConnection, unmount } from '../native/fuse.js';

export interface MountPointOptions {
  /** Absolute path; made when it does not exist. */
  readonly path: string;
  /** Marks the mount as this state directory's, whose lock the caller holds. */
  readonly stateId: string;
  readonly allowOther: boolean;
}

/** A mounted connection that nobody serves yet. */
export class MountPoint {
  readonly fd: number;
  readonly path: string;

  private constructor(path: string, fd: number) {
    this.path = path;
    this.fd = fd;
  }

  /**
   * Mounts, after clearing what a dead daemon of the same state directory left there. Such a mount is recognised in
   * mountinfo by its source; it is never touched by path, since that could hang.
   *
   * @throws BridleError MOUNT_BUSY when something else is mounted there, MOUNT_FAILED with the failed step
   */
  static async open(options: MountPointOptions): Promise<MountPoint> {
    const source = `bridle:${options.stateId}`;
    for (const stale of listFuseMounts()
      .filter((entry) => entry.mountpoint === options.path)
      .reverse()) {
      if (stale.source !== source) {
        throw new BridleError('MOUNT_BUSY', `${options.path}: ${stale.source} (${stale.type}) is mounted there`);
      }
      unmount(options.path, { lazy: true });
    }
    try {
      await mkdir(options.path, { recursive: true, mode: 0o700 });
      await access(options.path, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch (cause) {
      throw new BridleError('MOUNT_FAILED', `${options.path}: ${(cause as Error).message}`, { cause });
    }
    if ((await readdir(options.path)).length > 0) {
      throw new BridleError('MOUNT_BUSY', `${options.path}: the directory is not empty`);
    }
    try {
      return new MountPoint(options.path, openConnection(options.path, { source, allowOther: options.allowOther }).fd);
    } catch (cause) {
      throw new BridleError('MOUNT_FAILED', `${options.path}: ${(cause as Error).message}`, { cause });
    }
  }

  /** Unmounts. @returns false when somebody still uses it: then detach() is what is left */
  close(): boolean {
    if (!listFuseMounts().some((entry) => entry.mountpoint === this.path)) return true;
    try {
      unmount(this.path, { lazy: false });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
      throw error;
    }
  }

  /** Takes it out of the tree at once. It goes away with its last user. */
  detach(): void {
    unmount(this.path, { lazy: true });
  }
}
