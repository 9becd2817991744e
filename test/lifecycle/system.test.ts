import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { notifySystemd, peerCredentials, tryLock } from '../../src/native/system.js';
import { DIST } from './fake-daemon.js';

let directory = '';
let children: ChildProcess[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'system-'));
  children = [];
});

afterEach(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  rmSync(directory, { recursive: true, force: true });
  delete process.env['NOTIFY_SOCKET'];
});

function run(program: string, argv: readonly string[]): { child: ChildProcess; line: () => Promise<string> } {
  const child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  return { child, line: async () => String((await lines.next()).value) };
}

/** Node has no datagram sockets of this family; perl is part of every Debian. */
const RECEIVER = `use Socket; $| = 1; my $path = $ARGV[0]; $path =~ s/^@/\\0/;
socket(S, AF_UNIX, SOCK_DGRAM, 0) or die; bind(S, sockaddr_un($path)) or die "bind: $!"; print "ready\\n";
while (1) { recv(S, my $message, 65536, 0); $message =~ s/\\n/|/g; print "$message\\n"; }`;

describe('system calls', () => {
  it('LC-63 reads the credentials of a peer', async () => {
    const path = join(directory, 'socket');
    const server = createServer();
    const connected = once(server, 'connection') as Promise<[Socket & { _handle: { fd: number } }]>;
    await new Promise<void>((resolve) => {
      server.listen(path, resolve);
    });
    const client = spawn(process.execPath, ['-e', `require('net').connect(${JSON.stringify(path)})`], {
      stdio: 'ignore',
    });
    children.push(client);
    const [socket] = await connected;
    const credentials = peerCredentials(socket._handle.fd);
    expect(credentials).toEqual({ uid: process.getuid?.(), gid: process.getgid?.(), pid: client.pid });
    socket.destroy();
    server.close();
    expect(() => peerCredentials(-1)).toThrowError(expect.objectContaining({ code: 'EBADF' }));
  });

  it.each(['path', 'abstract'])('LC-64 notifies a %s socket', async (kind) => {
    const address = kind === 'path' ? join(directory, 'notify') : `@${directory}/notify`;
    const { line } = run('perl', ['-e', RECEIVER, address]);
    expect(await line()).toBe('ready');
    process.env['NOTIFY_SOCKET'] = address;
    expect(notifySystemd('READY=1\nSTATUS=up and running')).toBe(true);
    expect(notifySystemd('STOPPING=1')).toBe(true);
    expect(await line()).toBe('READY=1|STATUS=up and running');
    expect(await line()).toBe('STOPPING=1');
  });

  it('LC-64 sends nothing without the variable, and says when nobody listens', () => {
    expect(notifySystemd('READY=1')).toBe(false);
    process.env['NOTIFY_SOCKET'] = join(directory, 'nobody');
    expect(() => notifySystemd('READY=1')).toThrowError(expect.objectContaining({ code: 'ENOENT' }));
    process.env['NOTIFY_SOCKET'] = 'relative';
    expect(() => notifySystemd('READY=1')).toThrowError(expect.objectContaining({ code: 'EINVAL' }));
  });

  it('LC-65 locks a file for one holder', async () => {
    const path = join(directory, 'lock');
    const first = openSync(path, 'a');
    const second = openSync(path, 'a');
    expect([tryLock(first), tryLock(second), tryLock(first)]).toEqual([true, false, true]);
    closeSync(first);
    expect(tryLock(second)).toBe(true);
    closeSync(second);

    const holder = `import { openSync } from 'node:fs';
      const { tryLock } = await import(${JSON.stringify(`${DIST}/native/system.js`)});
      console.log(tryLock(openSync(${JSON.stringify(path)}, 'a'))); setInterval(() => {}, 60_000);`;
    const { child, line } = run(process.execPath, ['--input-type=module', '-e', holder]);
    expect(await line()).toBe('true');
    const third = openSync(path, 'a');
    expect(tryLock(third)).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(tryLock(third)).toBe(true);
    closeSync(third);
  });
});
