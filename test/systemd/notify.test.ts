import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { TestDaemon, until } from '../cli/support.js';

const RECEIVER = fileURLToPath(new URL('../../fixtures/systemd/notify-receiver.pl', import.meta.url));

/** The service manager's end: a real datagram socket. */
class Receiver implements AsyncDisposable {
  readonly socket: string;
  readonly #directory: string;
  readonly #child: ChildProcess;
  readonly #heard: string[] = [];

  private constructor(directory: string) {
    this.#directory = directory;
    this.socket = join(directory, 'notify');
    this.#child = spawn('perl', [RECEIVER, this.socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  static async open(): Promise<Receiver> {
    const receiver = new Receiver(await mkdtemp(join(tmpdir(), 'bridle-notify-')));
    receiver.#child.stdout?.setEncoding('utf8').on('data', (text: string) => receiver.#heard.push(text));
    await until('the receiver listens', () => receiver.#text().startsWith('listening\n'));
    return receiver;
  }

  #text(): string {
    return this.#heard.join('');
  }

  /** Every assignment that came, in order. */
  get messages(): string[] {
    return this.#text()
      .split('\n')
      .slice(1, -1)
      .flatMap((line) => line.split('|'))
      .filter((word) => word !== '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
    await rm(this.#directory, { recursive: true, force: true });
  }
}

describe('service manager', () => {
  it('SU-68 hears READY once, watchdog pings while it runs, STOPPING, and nothing after', async () => {
    await using receiver = await Receiver.open();
    const env = { NOTIFY_SOCKET: receiver.socket, WATCHDOG_USEC: '400000' };
    await using daemon = await TestDaemon.start({ env });
    await until('READY', () => receiver.messages.includes('READY=1'));
    // READY means that the mount answers.
    await statfs(daemon.mount);
    await until('pings', () => receiver.messages.filter((message) => message === 'WATCHDOG=1').length >= 3);
    expect(await daemon.stop()).toBe(0);
    await until('STOPPING', () => receiver.messages.includes('STOPPING=1'));

    const kinds = receiver.messages.map((message) => message.split('=')[0]);
    expect(receiver.messages.filter((message) => message === 'READY=1')).toHaveLength(1);
    expect(receiver.messages.filter((message) => message === 'STOPPING=1')).toHaveLength(1);
    expect(kinds).toContain('STATUS');
    expect(kinds.indexOf('READY')).toBeLessThan(kinds.indexOf('WATCHDOG'));
    expect(kinds.lastIndexOf('WATCHDOG')).toBeLessThan(kinds.indexOf('STOPPING'));
  });

  it('SU-68 no ping comes while the filesystem or the event loop does not answer', async () => {
    await using receiver = await Receiver.open();
    const env = { NOTIFY_SOCKET: receiver.socket, WATCHDOG_USEC: '400000' };
    await using daemon = await TestDaemon.start({ env });
    const pings = (): number => receiver.messages.filter((message) => message === 'WATCHDOG=1').length;
    await until('pings', () => pings() >= 1);
    daemon.child.kill('SIGSTOP');
    // Whatever was sent before the stop has arrived when the process is seen stopped and the count has settled.
    await until('no more pings come', async () => {
      const before = pings();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return pings() === before;
    });
    const stopped = pings();
    daemon.child.kill('SIGCONT');
    await until('pings again', () => pings() > stopped);
  });
});
