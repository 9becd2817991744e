import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bridle, start, until } from './support.js';

let place: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'bridle-demo-test-'));
});
afterEach(async () => {
  await rm(place, { recursive: true, force: true });
});

/** Nothing below the demo's temporary directory, mounted or on disk. */
async function expectNothingLeft(): Promise<void> {
  expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(place);
  expect(await readdir(place)).toEqual([]);
}

describe('bridle demo', () => {
  it('SU-61 shows tree, request, events, response and how to go on, and leaves nothing behind', async () => {
    const { code, stdout, stderr } = await bridle(['demo'], { env: { TMPDIR: place } });
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const parts = [
      'agents/',
      'inbox/.hello.tmp',
      '"run.accepted"',
      '"run.terminal"',
      'bridle.response/v1',
      'bridle run',
    ];
    const places = parts.map((part) => stdout.indexOf(part));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(-1);
    expect(stdout).toContain('"text": "Hello, files."');
    await expectNothingLeft();
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('SU-61 %s in the middle leaves nothing behind either', async (signal) => {
    const { child, ended } = start(['demo'], { env: { TMPDIR: place } });
    let output = '';
    child.stdout?.on('data', (text: string) => (output += text));
    await until('the mount is shown', () => output.includes('agents/'));
    child.kill(signal);
    expect((await ended).code).toBe(130);
    await expectNothingLeft();
  });
});
