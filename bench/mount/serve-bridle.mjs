// serve-bridle.mjs MOUNTPOINT BACKING CACHE_SECONDS [JOURNAL]: the tree by Bridle's addon. JavaScript accepts every
// hand-off; with a directory for a journal as the daemon does: appended before the answer, on disk before an fsync is
// answered.
import { join } from 'node:path';
import { Journal } from '../../dist/durable/journal.js';
import { openConnection, serve, unmount } from '../../dist/native/fuse.js';
import { obey } from './obey.mjs';
import { CONTENT, FILE_NAMES, latest } from './tree.mjs';

const MS_PER_SECOND = 1000;
const ROOT = 1;
const INODES = { directory: 2, inbox: 3, big: 4, latest: 5, firstFile: 6 };

const [mountpoint, backing, cacheSeconds, state] = process.argv.slice(2);
const journal = state === undefined ? undefined : await Journal.open(state);
const owner = { uid: process.getuid(), gid: process.getgid(), time: Date.now() };
const put = (parent, name, node) => ({ op: 'put', parent, name, node: { ...owner, ...node } });

const { fd } = openConnection(mountpoint, { source: 'bridle-bench', allowOther: false });
const session = serve({
  mountpoint,
  fd,
  root: { ...owner, inode: ROOT, kind: 'directory', mode: 0o755 },
  cacheMs: Number(cacheSeconds) * MS_PER_SECOND,
  onRequest: (request) => void answer(request),
  onAbort: () => undefined,
  onEnd: () => process.exit(1),
});
session.publish([
  put(ROOT, 'd', { inode: INODES.directory, kind: 'directory', mode: 0o755 }),
  put(ROOT, 'inbox', { inode: INODES.inbox, kind: 'inbox', mode: 0o700, path: join(backing, 'inbox') }),
  put(ROOT, 'big', { inode: INODES.big, kind: 'file', mode: 0o444, path: join(backing, 'big') }),
  ...FILE_NAMES.map((name, index) =>
    put(INODES.directory, name, { inode: INODES.firstFile + index, kind: 'bytes', mode: 0o444, bytes: CONTENT }),
  ),
]);
change(0);
await obey(change);
unmount(mountpoint, { lazy: true });
await session.stop();
await journal?.close();

function change(version) {
  session.publish([put(ROOT, 'latest', { inode: INODES.latest, kind: 'bytes', mode: 0o444, bytes: latest(version) })]);
}

async function answer({ op, token, name, bytes }) {
  if (op === 'fsync') await journal?.durable();
  if (op === 'handoff') journal?.append('queue.jsonl', bytes, { now: true });
  session.answer(token, 0);
  if (op === 'handoff') session.publish([{ op: 'consume', parent: INODES.inbox, name }]);
}
