import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FIRST_SERIAL, Serials } from '../../src/durable/serials.js';
import { StateDir } from '../../src/durable/state-dir.js';
import { startProgram } from './support/program.js';
import { temporaryDirectory } from './support/temporary.js';

interface Held {
  readonly pid: number;
  readonly id: string;
  readonly serials: readonly number[];
}

describe('state directory', () => {
  it('SE-01 SE-02 SE-03 belongs to one process, and to the next when that was killed', async () => {
    using temporary = temporaryDirectory();
    const path = join(temporary.path, 'state');
    const seen = new Set<number>();
    const ids = new Set<string>();
    for (let round = 0; round < 3; round++) {
      await using holder = startProgram('holder.mjs', [path]);
      await holder.printed(1);
      const held = JSON.parse(holder.lines[0] as string) as Held;
      await expect(StateDir.open(path)).rejects.toMatchObject({
        code: 'STATE_LOCKED',
        message: expect.stringContaining(`process ${held.pid}`),
      });
      ids.add(held.id);
      for (const serial of held.serials) {
        expect(seen.has(serial)).toBe(false);
        seen.add(serial);
      }
      holder.child.kill('SIGKILL');
      await holder.ended;
    }
    expect(ids.size).toBe(1);
    await using state = await StateDir.open(path);
    expect(ids.has(state.id)).toBe(true);
    await expect(StateDir.open(path)).rejects.toMatchObject({ code: 'STATE_LOCKED' });
  });

  it('SE-01 is private, also when somebody made it readable', async () => {
    using temporary = temporaryDirectory();
    const path = join(temporary.path, 'a', 'state');
    await (await StateDir.open(path)).close();
    expect(statSync(path).mode & 0o777).toBe(0o700);
    chmodSync(path, 0o755);
    await using _state = await StateDir.open(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('SE-02 refuses a damaged id and damaged serials', async () => {
    using temporary = temporaryDirectory();
    const path = temporary.path;
    await (await StateDir.open(path)).close();
    writeFileSync(join(path, 'id'), 'nonsense\n');
    await expect(StateDir.open(path)).rejects.toMatchObject({ code: 'STATE_CORRUPT' });
    writeFileSync(join(path, 'serials'), '-5\n');
    expect(() => Serials.open(path)).toThrow(expect.objectContaining({ code: 'STATE_CORRUPT' }));
  });

  it('SE-03 serials are reserved on disk before they are given out', () => {
    using temporary = temporaryDirectory();
    const first = Serials.open(temporary.path);
    const given = Array.from({ length: 3000 }, () => first.next());
    expect(given[0]).toBe(FIRST_SERIAL);
    expect(new Set(given).size).toBe(3000);
    const second = Serials.open(temporary.path);
    expect(second.next()).toBeGreaterThan(Math.max(...given));
  });
});
