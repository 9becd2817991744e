import { type Inode, ROOT_INODE } from '../native/fuse.js';

/**
 * An inode number is `serial * 256 + slot`. The serial was given to the object once and is stored with it, so a number
 * never depends on a path and is the same after a restart. Slots are part of the on-disk contract: never reuse one.
 */
function slotOf(serial: number, slot: number): Inode {
  return serial * 256 + slot;
}

/** Objects that exist once: serial 0. */
export const ROOT = {
  directory: ROOT_INODE,
  readme: slotOf(0, 2),
  version: slotOf(0, 3),
  status: slotOf(0, 4),
  statusJson: slotOf(0, 5),
  audit: slotOf(0, 6),
  agents: slotOf(0, 7),
  harnesses: slotOf(0, 8),
} as const;

export const agentInodes = (serial: number) => ({
  directory: slotOf(serial, 0),
  model: slotOf(serial, 1),
  harness: slotOf(serial, 2),
  system: slotOf(serial, 3),
  inbox: slotOf(serial, 4),
  outbox: slotOf(serial, 5),
  sessions: slotOf(serial, 6),
});

export const sessionInodes = (serial: number) => ({
  directory: slotOf(serial, 0),
  messages: slotOf(serial, 1),
  events: slotOf(serial, 2),
  latest: slotOf(serial, 3),
  state: slotOf(serial, 4),
  cwd: slotOf(serial, 5),
  meta: slotOf(serial, 6),
  runs: slotOf(serial, 7),
  follow: slotOf(serial, 8),
});

/** A request and its run share one serial. */
export const requestInodes = (serial: number) => ({
  run: slotOf(serial, 0),
  route: slotOf(serial, 1),
  terminal: slotOf(serial, 2),
  state: slotOf(serial, 3),
  response: slotOf(serial, 16),
  error: slotOf(serial, 17),
  outboxRoute: slotOf(serial, 18),
  outboxEvents: slotOf(serial, 19),
});

export const harnessInodes = (serial: number) => ({
  directory: slotOf(serial, 0),
  info: slotOf(serial, 1),
});
