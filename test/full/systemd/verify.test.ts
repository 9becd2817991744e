import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

interface Verified {
  readonly status: number | null;
  readonly complaints: string;
}

/** systemd-analyze's opinion of a unit whose program exists; unknown keys are complaints on stderr, not a status. */
async function verify(unit: string, user: boolean, change: (text: string) => string): Promise<Verified> {
  const directory = await mkdtemp(join(tmpdir(), 'bridle-unit-'));
  try {
    const text = await readFile(new URL(unit, import.meta.url), 'utf8');
    const copy = join(directory, 'bridle.service');
    await writeFile(copy, change(text.replace('/usr/bin/bridle', '/bin/true')));
    const words = ['verify', '--man=no', ...(user ? ['--user'] : []), copy];
    const env = { ...process.env, XDG_RUNTIME_DIR: directory };
    const { status, stderr, error } = spawnSync('systemd-analyze', words, { encoding: 'utf8', env });
    if (error !== undefined) throw error;
    return { status, complaints: stderr };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('systemd-analyze verify', () => {
  it.each([
    ['../../../systemd/bridle.service', false],
    ['../../../systemd/user/bridle.service', true],
  ])('SU-70 finds nothing in %s', async (unit, user) => {
    expect(await verify(unit, user, (text) => text)).toEqual({ status: 0, complaints: '' });
  });

  it('SU-70 would find a misspelt key', async () => {
    const { complaints } = await verify('../../../systemd/bridle.service', false, (text) =>
      text.replace('WatchdogSec', 'WatchdogSecs'),
    );
    expect(complaints).toContain('WatchdogSecs');
  });
});
