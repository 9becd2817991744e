import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { DIST } from '../../lifecycle/fake-daemon.js';

const MIB = 1024 * 1024;

interface Look {
  readonly rss: number;
  readonly descriptors: number;
}

it('LC-70 ten thousand starts and ends leave nothing behind', { timeout: 900_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'leak-'));
  try {
    // One arena and the smallest young generation: the rest of the memory is what the program keeps.
    const flags = ['--expose-gc', '--max-semi-space-size=1'];
    const args = [...flags, join(import.meta.dirname, 'many.mjs'), directory];
    const env = { ...process.env, BRIDLE_DIST_DIR: DIST, MALLOC_ARENA_MAX: '1' };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    const looks = JSON.parse(stdout) as Look[];
    expect(looks).toHaveLength(10);
    const counts = looks.map(({ rss: _rss, ...rest }) => rest);
    // After the first thousand nothing is made any more that stays.
    for (const count of counts) expect(count).toEqual(counts[0]);
    // The one child is the process that forks supervisors.
    expect(counts[0]).toMatchObject({ children: 1, leases: 0, witnesses: 0, cgroups: 0 });
    // Memory goes up and down by half a mebibyte between looks, so three of them stand for one.
    const early = Math.max(...looks.slice(2, 5).map(({ rss }) => rss));
    const late = Math.min(...looks.slice(7).map(({ rss }) => rss));
    expect((late - early) / MIB).toBeLessThanOrEqual(1);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
