import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { supervisorExecutable } from '../../src/native/addon.js';
import { listFuseMounts, openConnection, serve, unmount } from '../../src/native/fuse.js';
import { until } from '../support/until.js';
import { base, bytes, gid, Mounted, put, sh, start, uid } from './mounted.js';

const SERVE = resolve(import.meta.dirname, 'fixtures/serve.mjs');
const ADDON = join(dirname(supervisorExecutable), 'bridle.node');

const SAY_MS = 30_000;

/** A server in a process of its own. */
class Server implements AsyncDisposable {
  readonly directory: string;
  readonly mountpoint: string;
  readonly #process: ChildProcess;
  #said = '';

  private constructor(directory: string, ending: string) {
    this.directory = directory;
    this.mountpoint = join(directory, 'mount point');
    this.#process = spawn(process.execPath, [SERVE, ADDON, this.mountpoint, ending], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#process.stdout?.setEncoding('utf8').on('data', (part: string) => {
      this.#said += part;
    });
  }

  static async start(ending: string): Promise<Server> {
    const directory = await mkdtemp(join(tmpdir(), 'native-fuse-'));
    await mkdir(join(directory, 'mount point'));
    const server = new Server(directory, ending);
    try {
      await server.says('ready');
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  /** Waits until it has printed a word. */
  async says(word: string): Promise<void> {
    await until(() => this.#said.includes(word), `the server says ${word}`, SAY_MS);
  }

  get mounts(): number {
    return listFuseMounts().filter((mount) => mount.mountpoint === this.mountpoint).length;
  }

  /** Lets it end as asked for. @returns its exit code */
  async end(): Promise<number | null> {
    this.#process.stdin?.end();
    return await this.#closed();
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#closed();
  }

  async #closed(): Promise<number | null> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, 'close');
    return this.#process.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    if (this.mounts > 0) unmount(this.mountpoint, { lazy: true });
    await rm(this.directory, { recursive: true });
  }
}

const threads = () => readdir('/proc/self/task').then((tasks) => tasks.length);

describe('life of a served mount', () => {
  it('MT-29 stops cleanly with requests waiting, and leaves no thread, descriptor or wake-up', async () => {
    const before = { threads: 0, descriptors: 0 };
    for (let round = 0; round < 6; round++) {
      await using mounted = await Mounted.start();
      mounted.decide = () => undefined;
      const waiting = sh('mkdir "$1"', mounted.path('d'));
      await mounted.request('mkdir');
      await mounted.session.stop();
      await mounted.session.stop();
      expect((await waiting).stderr).toMatch(/shutdown|not connected/);
      expect(mounted.ended).toBe(0);
      expect(mounted.session.stats()).toMatchObject({ threads: 0 });
      expect(await sh('cat "$1/b"', mounted.path())).toMatchObject({
        stderr: expect.stringMatching(/not connected/),
      });
      expect(await mounted.session.stop()).toBeUndefined();
      const now = { threads: await threads(), descriptors: (await readdir('/proc/self/fd')).length };
      if (round === 1) Object.assign(before, now);
      if (round > 1) expect(now).toEqual(before);
    }
  });

  it('MT-29 ends with the process that serves it: stop, exit, and the end of a worker thread', async () => {
    for (const [ending, code, left] of [
      ['stop', 0, 0],
      ['exit', 7, 1],
      ['worker', 0, 0],
    ] as const) {
      await using server = await Server.start(ending);
      expect(await readFile(join(server.mountpoint, 'b'), 'utf8')).toBe('hello');
      const waiting = sh('mkdir "$1"', join(server.mountpoint, 'd'));
      await server.says('request');
      expect([ending, await server.end()]).toEqual([ending, code]);
      expect((await waiting).code).not.toBe(0);
      expect([ending, server.mounts]).toEqual([ending, left]);
    }
  });

  it('MT-29 leaves a dead mount after kill -9 that is found without touching it and removed lazily', async () => {
    await using server = await Server.start('nothing');
    expect(await readFile(join(server.mountpoint, 'b'), 'utf8')).toBe('hello');
    await server.kill();
    await expect(readFile(join(server.mountpoint, 'b'))).rejects.toMatchObject({ code: 'ENOTCONN' });
    const found = listFuseMounts().find((mount) => mount.mountpoint === server.mountpoint);
    expect(found).toMatchObject({ type: 'fuse.bridle', source: 'bridle-test' });
    const line = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .find((text) => text.includes('mount\\040point'));
    expect(line).toContain(` 0:${found?.connection} `);
    unmount(server.mountpoint, { lazy: true });
    expect(server.mounts).toBe(0);
    expect(await readdir(server.mountpoint)).toEqual([]);
  });

  it('MT-29 tells once when somebody else unmounts it', async () => {
    await using mounted = await Mounted.start();
    mounted.session.publish([put(1, 'b', bytes(256, 'x'))]);
    expect(await sh('umount "$1" || fusermount3 -u "$1"', mounted.path())).toMatchObject({ code: 0 });
    await until(() => mounted.ended > 0, 'the end is told');
    await mounted.session.stop();
    expect(mounted.ended).toBe(1);
    expect(await readdir(mounted.path())).toEqual([]);
  });

  it('MT-29 mounts for an ordinary user through fusermount3', async () => {
    if (uid !== 0) {
      await using server = await Server.start('stop');
      const line = readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .find((text) => text.includes(server.directory));
      expect(line).toContain(`user_id=${uid},group_id=${gid},default_permissions`);
      expect(await readFile(join(server.mountpoint, 'b'), 'utf8')).toBe('hello');
      expect([await server.end(), server.mounts]).toEqual([0, 0]);
      return;
    }
    // With a /dev/fuse as distributions have it and files that this user can reach, in a mount namespace of its own:
    // the machine stays as it is.
    const script = `
      mount -t tmpfs -o mode=755 none /mnt; cd /mnt
      cp "$2" serve.mjs; cp "$3" bridle.node
      mknod fuse c 10 229; chmod 666 fuse; mount --bind fuse /dev/fuse
      mkdir mount; chown 65534:65534 mount; mkfifo in out
      as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
      as_user "$1" serve.mjs /mnt/bridle.node /mnt/mount stop < in > out &
      exec 3> in 4< out
      read -r ready <&4
      echo "$ready" "$(as_user cat mount/b)" "$(grep -c '/mnt/mount .*fuse.bridle bridle-test' /proc/self/mountinfo)"
      exec 3>&-
      wait $!
      echo "$?" "$(grep -c '/mnt/mount ' /proc/self/mountinfo)"`;
    const user = start('unshare', ['-m', '/bin/sh', '-ec', script, 'sh', process.execPath, SERVE, ADDON]);
    expect(await user.outcome).toEqual({ code: 0, signal: null, stdout: 'ready hello 1\n0 0\n', stderr: '' });
  });

  it('MT-29 refuses what cannot be mounted or served with an errno and the step', async () => {
    await using mounted = await Mounted.start();
    const options = {
      mountpoint: mounted.path(),
      root: { ...base(1, 0o755), kind: 'directory' as const },
      onRequest: () => undefined,
      onAbort: () => undefined,
      onEnd: () => undefined,
    };
    expect(() => openConnection(mounted.backing('none'), { source: 'x', allowOther: true })).toThrow(
      expect.objectContaining({ code: 'ENOENT' }),
    );
    expect(() => unmount(mounted.backing(), { lazy: false })).toThrow(
      expect.objectContaining({ code: uid === 0 ? 'EINVAL' : 'EIO' }),
    );
    const { root: _, ...rootless } = options;
    expect(() => serve({ ...options, fd: -1 })).toThrow(RangeError);
    expect(() => serve({ ...rootless, fd: 0, root: { ...base(2, 0o755), kind: 'directory' } })).toThrow(TypeError);
  });
});
