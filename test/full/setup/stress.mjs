// Serves a mount while clients read, follow, list, write and hand in as fast as they can and the tree changes under them;
// then stops. Meant to run under a sanitizer. usage: node stress.mjs NATIVE_DIRECTORY MOUNTPOINT ROUNDS
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [native = '', directory = '', rounds = '100'] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(join(native, 'bridle.node'));
const root = mkdtempSync(join(directory, 'stress-'));
const mountpoint = join(root, 'mount');
mkdirSync(mountpoint);

const base = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, time: Date.now() };
const inode = { inbox: 256, control: 512, bytes: 768, rows: 800, entries: 1024 };
const log = join(root, 'log');
writeFileSync(log, '');
let answered = 0;

const { fd } = addon.openConnection(mountpoint, 'bridle-stress', false);
const session = addon.serve({
  mountpoint,
  fd,
  root: { ...base, inode: 1, kind: 'directory', mode: 0o755 },
  onRequest(request) {
    answered += 1;
    // Every fourth is refused, so that both ways of an answer are taken.
    session.answer(request.token, answered % 4 === 0 ? 22 : 0);
    if (request.op === 'handoff' && answered % 4 !== 0) {
      session.publish([{ op: 'consume', parent: inode.inbox, name: request.name }]);
    }
  },
  onAbort: () => undefined,
  onEnd: () => undefined,
});

const put = (name, node) => ({ op: 'put', parent: 1, name, node: { ...base, mode: 0o600, ...node } });
session.publish([
  put('inbox', { kind: 'inbox', inode: inode.inbox, mode: 0o700, path: join(root, 'inbox') }),
  put('rows', { kind: 'follow', inode: inode.rows, path: log }),
  put('control', { kind: 'control', inode: inode.control, bytes: Buffer.from('value') }),
]);
let version = -1;
const changing = setInterval(() => {
  version += 1;
  const entry = `entry-${version % 16}`;
  appendFileSync(log, `row ${version}\n`);
  session.publish([
    { op: 'grow', inode: inode.rows },
    put('bytes', { kind: 'bytes', inode: inode.bytes, bytes: Buffer.from(`version ${version}`) }),
    version % 32 < 16
      ? put(entry, { kind: 'bytes', inode: inode.entries + (version % 16) * 256, bytes: Buffer.from(entry) })
      : { op: 'remove', parent: 1, name: entry },
  ]);
}, 2);

const CLIENT = `
const fs = require('node:fs');
const [mount, id, rounds] = process.argv.slice(1);
const attempt = (act) => { try { act(); } catch (error) { if (typeof error.code !== 'string') throw error; } };
const rows = fs.openSync(mount + '/rows');
for (let i = 0; i < Number(rounds); i++) {
  fs.readSync(rows, Buffer.alloc(64));
  for (const name of fs.readdirSync(mount)) if (name !== 'rows') attempt(() => fs.readFileSync(mount + '/' + name));
  attempt(() => fs.writeFileSync(mount + '/control', 'value ' + i));
  const temporary = mount + '/inbox/.' + id + '.tmp';
  attempt(() => fs.writeFileSync(temporary, 'request ' + i));
  attempt(() => fs.renameSync(temporary, mount + '/inbox/' + id + '-' + i + '.req.json'));
  attempt(() => fs.unlinkSync(temporary));
}`;
// The clients are ordinary processes: only the server is watched.
const { LD_PRELOAD: _, ...env } = process.env;
const clients = ['a', 'b', 'c', 'd'].map((id) =>
  spawn(process.execPath, ['-e', CLIENT, mountpoint, id, rounds], { stdio: 'inherit', env }),
);
const codes = await Promise.all(clients.map(async (client) => (await once(client, 'exit'))[0]));
clearInterval(changing);
addon.unmount(mountpoint, false);
await session.stop();
rmSync(root, { recursive: true });
process.stdout.write(`${JSON.stringify({ answered, codes })}\n`);
