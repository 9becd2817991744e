import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SERVED } from '../../../fixtures/provider-double/usage.mjs';
import type { HarnessEvent } from '../../../src/contract/events.js';
import { finalOf } from '../../harnesses/workbench.js';
import { KEY, type Ran, RealClis } from './real-cli.js';

let clis: RealClis;

beforeAll(async () => {
  clis = await RealClis.create();
});

afterAll(async () => {
  await clis[Symbol.asyncDispose]();
});

const textOf = (events: readonly HarnessEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('');

/** What holds after every run: the boundary is empty, the record is gone, and no event holds the key. */
function expectClean(ran: Ran): void {
  expect(ran.cleanup).toEqual({ empty: true });
  expect(clis.store.records.size).toBe(0);
  expect(JSON.stringify(ran.events)).not.toContain(KEY);
  const strange = ran.events.filter(
    (event) => event.type === 'notice' && /^(unknown|malformed) event/.test(event.message),
  );
  expect(strange).toEqual([]);
}

describe.each(['codex', 'pi'] as const)('the real %s', (cli) => {
  it('HA-20 answers, with usage to the token as it was served', async () => {
    const prompt = 'say "hello"\nin two lines: žluťoučký 🐎';
    const ran = await clis.run(cli, { prompt });
    const final = finalOf(ran.events);
    expect(final).toMatchObject({ ok: true, text: 'Hello from the provider double.' });
    expect(textOf(ran.events)).toBe('Hello from the provider double.');
    expect(final.usage).toMatchObject({
      inputTokens: SERVED.input,
      outputTokens: SERVED.output,
      cacheReadTokens: SERVED.cached,
    });
    const seen = clis.provider.requests.at(-1);
    expect(seen?.conversation.users.at(-1)).toBe(prompt);
    expect(seen?.authorization).toBe(`Bearer ${KEY}`);
    expectClean(ran);
  });

  it('HA-20 runs a tool call that really happens', async () => {
    const ran = await clis.run(cli, { prompt: '[[tool echo made > proof.txt; cat proof.txt]]' });
    expect(await readFile(join(ran.workspace, 'proof.txt'), 'utf8')).toBe('made\n');
    expect(finalOf(ran.events)).toMatchObject({ ok: true, text: 'The tool said: made' });
    const types = ran.events.map((event) => event.type);
    expect(types.indexOf('tool.call')).toBeLessThan(types.indexOf('tool.result'));
    expect(ran.events.find((event) => event.type === 'tool.result')).toMatchObject({ ok: true, output: 'made\n' });
    expectClean(ran);
  });

  it('HA-20 writes nothing in safe mode', async () => {
    const ran = await clis.run(cli, { prompt: '[[tool echo made > proof.txt]]', permissions: 'safe' });
    expect(await readdir(ran.workspace)).not.toContain('proof.txt');
    expect(finalOf(ran.events).ok).toBe(true);
    expectClean(ran);
  });

  it('HA-20 brings the system text, the history and the reasoning level to the model', async () => {
    const history = [
      { role: 'user', content: 'EARLIER-QUESTION' },
      { role: 'assistant', content: 'EARLIER-ANSWER' },
    ] as const;
    const ran = await clis.run(cli, { system: 'SYSTEM-MARK', history, prompt: 'go on', reasoning: 'high' });
    expect(finalOf(ran.events).ok).toBe(true);
    const seen = clis.provider.requests.at(-1);
    expect(seen?.conversation.system).toContain('SYSTEM-MARK');
    expect(seen?.conversation.users.at(-1)).toContain('EARLIER-ANSWER');
    expect(JSON.stringify(seen?.body)).toMatch(/"(effort|reasoning_effort)":"high"/);
    expectClean(ran);
  });

  it('HA-20 asks for the model that the request names', async () => {
    const model = cli === 'pi' ? 'double/double-model' : 'another-model';
    const ran = await clis.run(cli, { model });
    expect(clis.provider.requests.at(-1)?.body['model']).toBe(model.split('/').at(-1));
    expect(finalOf(ran.events).model).toBe(model);
    expectClean(ran);
  });

  it.each(['[[status 401]]', '[[status 429]]', '[[status 500]]', '[[cut]]'])('HA-20 fails on %s', async (prompt) => {
    const ran = await clis.run(cli, { prompt });
    const final = finalOf(ran.events);
    expect(final).toMatchObject({ ok: false, error: { code: 'HARNESS_FAILED', message: expect.stringMatching(/\w/) } });
    expect(final.usage.inputTokens).toBeNull();
    expectClean(ran);
  });

  it('HA-20 survives one failing request', async () => {
    const ran = await clis.run(cli, { prompt: `[[once 500]] ${cli}` });
    expect(finalOf(ran.events)).toMatchObject({ ok: true, text: 'Hello from the provider double.' });
    expectClean(ran);
  });

  it('HA-20 streams a long answer whole', async () => {
    const ran = await clis.run(cli, { prompt: '[[long 2000]]' });
    const text = finalOf(ran.events).text;
    expect(text.trim().split(/\s+/)).toHaveLength(2000);
    expect(textOf(ran.events)).toBe(text);
    expectClean(ran);
  });

  it('HA-20 ends in the middle of an answer when it is aborted', async () => {
    const before = clis.provider.requests.length;
    const ran = await clis.run(cli, { prompt: '[[slow]]' }, ({ abort }) => {
      void expect
        .poll(() => clis.provider.requests.length, { timeout: 60_000 })
        .toBeGreaterThan(before)
        .then(abort);
    });
    expect(finalOf(ran.events)).toMatchObject({ ok: false });
    expect(finalOf(ran.events).error).toBeUndefined();
    expectClean(ran);
  });

  it('HA-20 is a failure when the program is killed', async () => {
    const before = clis.provider.requests.length;
    const ran = await clis.run(cli, { prompt: '[[slow]]' }, ({ pid }) => {
      const seen = expect.poll(() => clis.provider.requests.length, { timeout: 60_000 }).toBeGreaterThan(before);
      void seen.then(() => process.kill(pid, 'SIGKILL'));
    });
    expect(finalOf(ran.events)).toMatchObject({ ok: false, error: { code: 'HARNESS_FAILED' } });
    expectClean(ran);
  });
});
