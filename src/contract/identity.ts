/** What makes a process identity unique where a PID is not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly token: string;
  /**
   * `pidfs`: boot id and pidfs inode, unique for the life of the boot. `starttime`: boot id, PID namespace and start
   * tick, weaker: equal after a fast PID reuse, so a signal needs a second proof. `creationtime`: Windows, `utc:` and
   * creation time in units of 100 ns since 1601, the same in no two boots.
   */
  readonly scheme: 'pidfs' | 'starttime' | 'creationtime';
}

/** Who makes a request through the mount or a socket. */
export interface Caller {
  readonly uid: number;
  readonly gid: number;
  /** Process id (not thread id); 0 when the caller is in a PID namespace that we cannot see. */
  readonly pid: number;
}
