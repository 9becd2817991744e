import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { HarnessEvent } from '../../src/contract/events.js';
import { collect, finalOf, recording, Workbench } from './workbench.js';

const notices = (events: readonly HarnessEvent[]): string =>
  events.map((event) => (event.type === 'notice' ? event.message : '')).join('\n');

describe('the end of a run', () => {
  it('HA-14 a complete answer stays good when the exit status is not 0, and that is noted', async () => {
    await using bench = await Workbench.create();
    const codex = bench.replaying('codex', { REPLAY_FILE: recording('codex', 'text'), REPLAY_EXIT: '3' });
    const events = await collect(codex.execute(bench.request()));
    expect(finalOf(events).ok).toBe(true);
    expect(notices(events)).toContain('exit status 3 after a complete answer');
  });

  it.each(['codex', 'pi'] as const)('HA-14 %s without a result is a failure, also with exit status 0', async (cli) => {
    await using bench = await Workbench.create();
    const silent = bench.replaying(cli, { REPLAY_STDERR: 'could not log in' });
    const final = finalOf(await collect(silent.execute(bench.request())));
    expect(final).toMatchObject({ ok: false, error: { code: 'HARNESS_FAILED' } });
    expect(final.error?.message).toMatch(/without a result: exit status 0; stderr: could not log in/);
  });

  it('HA-14 pi ends with status 0 on a failure of its provider and is judged by its last event', async () => {
    await using bench = await Workbench.create();
    const pi = bench.replaying('pi', { REPLAY_FILE: recording('pi', 'status-401') });
    const final = finalOf(await collect(pi.execute(bench.request())));
    expect(final).toMatchObject({
      ok: false,
      error: { code: 'HARNESS_FAILED', message: expect.stringContaining('401') },
    });
  });

  it('HA-14 does not wait for a descendant that holds stdout of a program that is gone', async () => {
    await using bench = await Workbench.create();
    const codex = bench.replaying('codex', { REPLAY_FILE: recording('codex', 'text'), REPLAY_CHILD: '1' });
    const events = await collect(codex.execute(bench.request()));
    expect(finalOf(events).ok).toBe(true);
    expect(notices(events)).toContain('still holds its stdout');
  });

  it('HA-14 does not wait for a program that said its last word and stays', async () => {
    await using bench = await Workbench.create();
    const codex = bench.replaying('codex', { REPLAY_FILE: recording('codex', 'text'), REPLAY_HANG: 'after' });
    const events = await collect(codex.execute(bench.request()));
    expect(finalOf(events).ok).toBe(true);
    expect(notices(events)).toContain('did not exit');
  });

  it('HA-14 loses nothing when the consumer is slow', async () => {
    await using bench = await Workbench.create();
    const file = join(bench.directory, 'long.jsonl');
    const line = (n: number): string => `${JSON.stringify({ type: 'text', text: `${n} ${'x'.repeat(1000)}\n` })}\n`;
    await writeFile(file, Array.from({ length: 400 }, (_, n) => line(n)).join(''));
    const script = bench.replaying('script', { REPLAY_FILE: file });
    let texts = 0;
    for await (const event of script.execute(bench.request())) {
      if (event.type !== 'text') continue;
      texts += 1;
      // Longer than the quiet time after which a silent stdout is given up.
      if (texts === 1) await sleep(2500);
    }
    expect(texts).toBe(400);
  });

  it('HA-15 keeps the last 2 KiB of stderr for the message of a failure', async () => {
    await using bench = await Workbench.create();
    const noisy = `${'e'.repeat(100_000)} the end`;
    const codex = bench.replaying('codex', { REPLAY_STDERR: noisy, REPLAY_EXIT: '1' });
    const message = finalOf(await collect(codex.execute(bench.request()))).error?.message ?? '';
    expect(message.endsWith('the end')).toBe(true);
    expect(message.length).toBeLessThan(2300);
  });

  it('HA-15 reports a program that cannot be started as SPAWN_FAILED', async () => {
    await using bench = await Workbench.create();
    const codex = bench.replaying('codex');
    const events = collect(codex.execute(bench.request({ cwd: join(bench.directory, 'missing') })));
    await expect(events).rejects.toMatchObject({ code: 'SPAWN_FAILED' });
  });
});

describe('secrets', () => {
  it('HA-13 never appear in an event, whatever the program prints', async () => {
    await using bench = await Workbench.create();
    const secret = 'a-value-that-is-secret';
    const file = join(bench.directory, 'leak.jsonl');
    const lines = [
      JSON.stringify({ type: 'text', text: `the key is ${secret}` }),
      `noise ${secret}`,
      JSON.stringify({ type: 'unheard-of', native: secret }),
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    const control = { REPLAY_FILE: file, REPLAY_STDERR: `bad key ${secret}`, REPLAY_EXIT: '1', REPLAY_TOKEN: secret };
    const events = await collect(bench.replaying('script', control).execute(bench.request()));
    expect((await bench.note()).env['REPLAY_TOKEN']).toBe(secret);
    expect(JSON.stringify(events)).not.toContain(secret);
    expect(events[0]).toEqual({ type: 'text', text: 'the key is [secret]' });
    expect(finalOf(events).error?.message).toContain('bad key [secret]');
  });
});
