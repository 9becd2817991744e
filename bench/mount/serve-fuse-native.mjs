// serve-fuse-native.mjs MOUNTPOINT BACKING CACHE_SECONDS PACKAGES: the tree by fuse-native, whose package is in the
// directory PACKAGES. Synchronous calls on the backing files, for they are the quickest.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { constants as machine } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { obey } from './obey.mjs';
import { CONTENT, FILE_NAMES, latest } from './tree.mjs';

const [mountpoint, backing, cacheSeconds, packages] = process.argv.slice(2);
const Fuse = createRequire(join(packages, 'package.json'))('fuse-native');

const big = openSync(join(backing, 'big'), 'r');
const now = new Date();
const attributes = (mode, size) => {
  const owner = { uid: process.getuid(), gid: process.getgid() };
  return { mode, size, ...owner, nlink: 1, mtime: now, atime: now, ctime: now };
};
const folder = attributes(constants.S_IFDIR | 0o755, 0);
const plain = (size) => attributes(constants.S_IFREG | 0o444, size);
const nodes = new Map([
  ['/', folder],
  ['/d', folder],
  ['/inbox', folder],
  ['/big', plain(fstatSync(big).size)],
  ['/latest', plain(latest(0).length)],
  ...FILE_NAMES.map((name) => [`/d/${name}`, plain(CONTENT.length)]),
]);
const lists = new Map([
  ['/', ['d', 'inbox', 'big', 'latest']],
  ['/d', FILE_NAMES],
  ['/inbox', []],
]);
let newest = latest(0);

/** Answers with the errno of what `action` throws. */
function attempt(callback, action) {
  let result;
  try {
    result = action();
  } catch (error) {
    callback(-(machine.errno[error.code] ?? machine.errno.EIO));
    return;
  }
  callback(0, result);
}

function read(path, _fd, buffer, length, position, callback) {
  if (path === '/big') {
    callback(readSync(big, buffer, 0, length, position));
    return;
  }
  const bytes = path === '/latest' ? newest : CONTENT;
  callback(bytes.copy(buffer, 0, position, Math.min(position + length, bytes.length)));
}

function syncDirectory(path) {
  const fd = openSync(join(backing, path), 'r');
  fsyncSync(fd);
  closeSync(fd);
}

const operations = {
  getattr(path, callback) {
    const node = nodes.get(path);
    if (node !== undefined) callback(0, node);
    else if (dirname(path) === '/inbox') attempt(callback, () => statSync(join(backing, path)));
    else callback(Fuse.ENOENT);
  },
  readdir: (path, callback) => callback(0, lists.get(path)),
  open: (_path, _flags, callback) => callback(0, 0),
  read,
  create: (path, mode, callback) => attempt(callback, () => openSync(join(backing, path), 'wx', mode)),
  write: (_path, fd, buffer, length, position, callback) => callback(writeSync(fd, buffer, 0, length, position)),
  release(_path, fd, callback) {
    attempt(callback, () => {
      if (fd !== 0) closeSync(fd);
    });
  },
  fsync: (_path, _dataOnly, fd, callback) => attempt(callback, () => fsyncSync(fd)),
  fsyncdir: (path, _dataOnly, _fd, callback) => attempt(callback, () => syncDirectory(path)),
  rename(from, to, callback) {
    attempt(callback, () => renameSync(join(backing, from), join(backing, to)));
    unlinkSync(join(backing, to));
  },
};

// As text, for the number 0 counts as an option that was not given.
const cache = { entryTimeout: cacheSeconds, attrTimeout: cacheSeconds };
// Its deadlines would cost a timer for every request.
const fuse = new Fuse(mountpoint, operations, { ...cache, defaultPermissions: true, timeout: false });
await promisify(fuse.mount.bind(fuse))();
await obey((version) => {
  newest = latest(version);
});
await promisify(fuse.unmount.bind(fuse))();
