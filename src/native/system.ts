import { nativeExports } from './addon.js';

interface SystemExports {
  peerCredentials(fd: number): { uid: number; gid: number; pid: number };
  notifySystemd(message: string): boolean;
  tryLock(fd: number): boolean;
}

const addon = nativeExports<SystemExports>();

/** Credentials of the peer of a connected Unix socket (SO_PEERCRED). */
export function peerCredentials(fd: number): { readonly uid: number; readonly gid: number; readonly pid: number } {
  return addon.peerCredentials(fd);
}

/**
 * Sends one sd_notify(3) message, for example `READY=1\nSTATUS=…`, to the datagram socket in $NOTIFY_SOCKET (path or
 * abstract). @returns false when the variable is not set. @throws Error with `code` when sending fails.
 */
export function notifySystemd(message: string): boolean {
  return addon.notifySystemd(message);
}

/**
 * Takes an exclusive open-file-description lock on a descriptor; released when the last copy closes.
 * @returns false when somebody else holds it
 */
export function tryLock(fd: number): boolean {
  return addon.tryLock(fd);
}
