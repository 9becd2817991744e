import { existsSync } from 'node:fs';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { BOUNDARIES, isAlive, OPERATION, STUBBORN, World, writtenIdentity } from './support.js';

const SIZE = { rows: 33, columns: 101 };

describe('a terminal', () => {
  it('LC-14 is the controlling one, has the size that was named, and carries both directions', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      ...world.script(
        'stty size; tty; test -t 0 && test -t 1 && test -t 2 && echo all three; echo err >&2; read x </dev/tty; echo "got $x"',
      ),
      terminal: SIZE,
    });
    const output = text(child.stdout);
    child.stdin.write('hello\n');
    expect(await child.exited).toEqual({ code: 0, signal: null });
    await lease.close();
    // The terminal's echo of the typed line may come between any two of them.
    const lines = (await output).split('\r\n').filter((line) => line !== 'hello');
    expect(lines).toEqual(['33 101', expect.stringMatching(/^\/dev\/pts\/\d+$/), 'all three', 'err', 'got hello', '']);
    expect(await text(child.stderr)).toBe('');
  });

  it('LC-14 can be resized, and its programs hear of it', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      ...world.script('trap "stty size; exit" WINCH; echo > "$1/ready"; while :; do sleep 0.05; done'),
      terminal: SIZE,
    });
    const output = text(child.stdout);
    await until(() => existsSync(world.path('ready')), 'the program waits');
    child.terminal?.resize({ rows: 7, columns: 9 });
    await child.exited;
    await lease.close();
    expect(await output).toBe('7 9\r\n');
    child.terminal?.resize(SIZE);
  });

  it('LC-14 the end of input reaches the program', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({ ...world.script('stty -echo; cat; echo over'), terminal: SIZE });
    const output = text(child.stdout);
    child.stdin.end('one line\n');
    await child.exited;
    await lease.close();
    expect((await output).replace(/^one line\r\n(?=one)/, '')).toMatch(/one line\r\n.*over\r\n$/s);
  });

  it('LC-34 all output is there when the exit is reported, whoever begins to read only then', async () => {
    await using world = new World();
    for (let round = 0; round < 20; round += 1) {
      await using lease = world.lifecycle.lease(OPERATION);
      const child = await lease.launcher.launch({
        ...world.script('stty raw; head -c 3000 /dev/zero; printf END'),
        terminal: SIZE,
      });
      expect(await child.exited).toEqual({ code: 0, signal: null });
      const output = await buffer(child.stdout);
      expect(output.length).toBe(3003);
      expect(output.toString().endsWith('END')).toBe(true);
    }
  });

  it('LC-34 the exit is reported while somebody else still holds the terminal, after what was printed', async () => {
    await using world = new World();
    const lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      ...world.script('stty raw; (trap "" HUP; sleep 60) & printf END'),
      terminal: SIZE,
    });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    const output = text(child.stdout);
    expect(await lease.close()).toEqual({ empty: true });
    expect(await output).toBe('END');
  });

  it('LC-34 a megabyte arrives whole, and EIO is its end', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      ...world.script('stty raw; head -c 1000000 /dev/zero'),
      terminal: SIZE,
    });
    expect((await buffer(child.stdout)).length).toBe(1_000_000);
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  it('LC-34 a program goes on when nobody reads any more', async () => {
    await using world = new World();
    await using lease = world.lifecycle.lease(OPERATION);
    const child = await lease.launcher.launch({
      ...world.script('stty raw; head -c 1000000 /dev/zero; echo done > "$1/done"; sleep 60'),
      terminal: SIZE,
    });
    child.stdout.destroy();
    await until(() => existsSync(world.path('done')), 'the program has printed everything');
  });

  it.each(BOUNDARIES)('LC-20 LC-21 what has a terminal ends like everything else, $name', async ({ cgroup }) => {
    await using world = new World({ cgroup });
    const lease = world.lifecycle.lease(OPERATION);
    await lease.launcher.launch({ ...world.script(STUBBORN), terminal: SIZE });
    const child = await writtenIdentity(world.directory, 'child');
    const grandchild = await writtenIdentity(world.directory, 'grandchild');
    expect(await lease.close()).toEqual({ empty: true });
    expect([child, grandchild].filter(isAlive)).toEqual([]);
  });
});
