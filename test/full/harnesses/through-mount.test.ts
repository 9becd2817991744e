import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEY_NAME, writeCodexHome, writePiHome } from '../../../fixtures/provider-double/homes.mjs';
import { type Provider, startProvider } from '../../../fixtures/provider-double/server.mjs';
import { fullDirectory, installClis } from '../../../scripts/full/install-clis.mjs';
import { handIn, response, rows, textOf } from '../../support/client.js';
import { TestDaemon } from '../../support/daemon.js';
import { until } from '../../support/until.js';
import { KEY } from './real-cli.js';

let daemon: TestDaemon;
let provider: Provider;
let root: string;

beforeAll(async () => {
  const programs = await installClis();
  root = await mkdtemp(join(fullDirectory(), 'run-'));
  provider = await startProvider();
  await writeCodexHome(join(root, 'home'), provider.url);
  await writePiHome(join(root, 'home'), provider.url);
  daemon = await TestDaemon.start({
    config: `[harness.codex]\nenv = ["${KEY_NAME}"]\n[harness.pi]\nenv = ["${KEY_NAME}"]\n`,
    env: {
      HOME: join(root, 'home'),
      PATH: `${programs}:${dirname(process.execPath)}:/usr/bin:/bin`,
      PI_OFFLINE: '1',
      [KEY_NAME]: KEY,
    },
  });
});

afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  await provider.close();
  await rm(root, { recursive: true, force: true });
});

describe.each(['codex', 'pi'] as const)('the real %s through the mount', (harness) => {
  const model = harness === 'pi' ? { model: 'double/double-model' } : {};

  it('RQ-30 a request file becomes a tool call that really happens, and an answer', async () => {
    const workspace = await mkdtemp(join(root, 'workspace-'));
    const id = `${harness}-tool`;
    const prompt = '[[tool echo made > proof.txt; cat proof.txt]]';
    const request = { prompt, harness, cwd: workspace, permissions: 'unrestricted', ...model };
    expect(await handIn(daemon.agent(), id, request)).toBeUndefined();
    expect(await response(daemon.agent(), id, 300_000)).toMatchObject({
      outcome: 'success',
      harness,
      text: 'The tool said: made',
      usage: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
    });
    expect(await readFile(join(workspace, 'proof.txt'), 'utf8')).toBe('made\n');
    const events = await rows(join(daemon.agent(), 'outbox', `${id}.events.jsonl`));
    expect(events.map((row) => row.seq)).toEqual(events.map((_, index) => index + 1));
    const types = events.map((row) => row.type);
    expect(types.indexOf('tool.call')).toBeLessThan(types.indexOf('tool.result'));
    expect(types.at(-1)).toBe('run.terminal');
    expect(JSON.stringify(events) + daemon.log).not.toContain(KEY);
  });

  it('RQ-30 events are there to read while the run goes on', async () => {
    const workspace = await mkdtemp(join(root, 'workspace-'));
    const id = `${harness}-live`;
    // The tool waits for a file that is made only after its call was read: without live events nothing would go on.
    const prompt = '[[tool until test -e go; do sleep 0.1; done; cat go]]';
    const request = { prompt, harness, cwd: workspace, permissions: 'unrestricted', ...model };
    const events = join(daemon.agent(), 'outbox', `${id}.events.jsonl`);
    expect(await handIn(daemon.agent(), id, request)).toBeUndefined();
    await until(async () => (await textOf(events)).includes('"tool.call"'), 'the tool call shows', 300_000);
    await writeFile(join(workspace, 'go'), 'seen\n');
    expect((await response(daemon.agent(), id, 300_000)).text).toBe('The tool said: seen');
  });
});
