import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { handIn, response, rows, textOf } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';
import { until } from '../support/until.js';

/** Sleeps at its first start, answers at its second: the marker file lies outside the run. */
const SLEEPS_ONCE = `
[harness.script]
program = "/bin/sh"
args = ["-c", "cat >/dev/null; test -e MARKER || { : > MARKER; exec sleep 600; }; echo '{\\"type\\":\\"text\\",\\"text\\":\\"second\\"}'"]
`;

async function withSleeper(): Promise<TestDaemon> {
  const daemon = await TestDaemon.start();
  await daemon.end();
  await writeFile(daemon.configFile, SLEEPS_ONCE.replaceAll('MARKER', join(daemon.directory, 'marker')));
  await daemon.start();
  return daemon;
}

async function killWhileRunning(daemon: TestDaemon, id: string): Promise<void> {
  const events = join(daemon.agent(), 'outbox', `${id}.events.jsonl`);
  await until(async () => (await textOf(events)).includes('"run.started"'), 'the run has started');
  await until(() => existsSync(join(daemon.directory, 'marker')), 'the program runs');
  await daemon.end('SIGKILL');
  await daemon.start();
}

describe('recovery', () => {
  it('RQ-26 a run whose daemon died is reported as cancelled, once, and not run again', async () => {
    await using daemon = await withSleeper();
    await handIn(daemon.agent(), 'cut', { prompt: 'x', harness: 'script' });
    await killWhileRunning(daemon, 'cut');
    expect(await response(daemon.agent(), 'cut')).toMatchObject({
      outcome: 'cancelled',
      cause: 'caller_died',
      stage: 'cancellation',
      harness: 'script',
    });
    await daemon.end('SIGKILL');
    await daemon.start();
    const events = await rows(join(daemon.agent(), 'outbox', 'cut.events.jsonl'));
    expect(events.filter((row) => row.type === 'run.terminal')).toHaveLength(1);
    expect(events.map((row) => row.seq)).toEqual(events.map((_, index) => index + 1));
  });

  it('RQ-26 retry on-crash runs it again', async () => {
    await using daemon = await withSleeper();
    await handIn(daemon.agent(), 'again', { prompt: 'x', harness: 'script', retry: 'on-crash' });
    await killWhileRunning(daemon, 'again');
    expect(await response(daemon.agent(), 'again')).toMatchObject({ outcome: 'success', text: 'second' });
    const events = await rows(join(daemon.agent(), 'outbox', 'again.events.jsonl'));
    expect(events.filter((row) => row.type === 'run.terminal')).toHaveLength(1);
  });

  it('RQ-27 a session goes on after a restart', async () => {
    await using daemon = await TestDaemon.start();
    const ask = (id: string, prompt: string) =>
      handIn(daemon.agent(), id, { prompt, harness: 'echo', session: 'talk' });
    await ask('first', 'remember the number 7');
    await response(daemon.agent(), 'first');
    await daemon.end('SIGTERM');
    await daemon.start();
    await ask('second', '/history');
    expect((await response(daemon.agent(), 'second')).text).toBe('remember the number 7');
    const events = await rows(join(daemon.agent(), 'sessions', 'talk', 'events.jsonl'));
    expect(events.map((row) => row.seq)).toEqual(events.map((_, index) => index + 1));
  });

  it('RQ-04 an accepted request is safe to hand in again after a crash', async () => {
    await using daemon = await TestDaemon.start();
    await handIn(daemon.agent(), 'safe', { prompt: 'x', harness: 'echo' });
    const first = await response(daemon.agent(), 'safe');
    await daemon.end('SIGKILL');
    await daemon.start();
    expect(await handIn(daemon.agent(), 'safe', { prompt: 'x', harness: 'echo' })).toBeUndefined();
    expect(await response(daemon.agent(), 'safe')).toEqual(first);
  });
});

describe('limits of a run', () => {
  const SILENT = '[harness.script]\nprogram = "/bin/sh"\nargs = ["-c", "cat >/dev/null; exec sleep 600"]\n';

  it('RQ-25 timeoutMs and idleTimeoutMs end a run as timed out', async () => {
    await using daemon = await TestDaemon.start({ config: SILENT });
    await handIn(daemon.agent(), 'wall', { prompt: 'x', harness: 'script', timeoutMs: 300 });
    await handIn(daemon.agent(), 'idle', { prompt: 'x', harness: 'script', idleTimeoutMs: 300 });
    const timedOut = { outcome: 'timed_out', cause: 'deadline_exceeded', stage: 'timeout' };
    expect(await response(daemon.agent(), 'wall')).toMatchObject(timedOut);
    expect(await response(daemon.agent(), 'idle')).toMatchObject(timedOut);
  });

  it('RQ-21 a field that the harness cannot honour is refused before anything starts', async () => {
    await using daemon = await TestDaemon.start();
    await handIn(daemon.agent(), 'seeded', { prompt: 'x', harness: 'echo', seed: 1 });
    expect(await response(daemon.agent(), 'seeded')).toMatchObject({
      outcome: 'failed',
      cause: 'route_unavailable',
      error: { code: 'UNSUPPORTED_FIELD', path: 'seed' },
    });
    const events = await rows(join(daemon.agent(), 'outbox', 'seeded.events.jsonl'));
    expect(events.map((row) => row.type)).toEqual(['run.accepted', 'run.terminal']);
  });

  it('RQ-20 the first healthy harness is taken when nobody names one, and the route says why', async () => {
    await using daemon = await TestDaemon.start({
      config: '[harness.codex]\nprogram = "/nonexistent/codex"\n[harness.pi]\nprogram = "/bin/true"\n',
    });
    await handIn(daemon.agent(), 'free', { prompt: 'x' });
    expect((await response(daemon.agent(), 'free')).harness).toBe('pi');
    const route = JSON.parse(await textOf(join(daemon.agent(), 'outbox', 'free.route.json')));
    expect(route).toMatchObject({ harness: 'pi', reason: 'first-healthy' });
    expect(route.candidates[0]).toMatchObject({ harness: 'codex', eligible: false });
  });
});
