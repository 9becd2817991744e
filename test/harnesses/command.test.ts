import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ExecuteRequest } from '../../src/contract/harness.js';
import { codexArguments } from '../../src/harnesses/codex/command.js';
import { programEnvironment } from '../../src/harnesses/environment.js';
import { piArguments } from '../../src/harnesses/pi/command.js';
import { collect, finalOf, harness, recording, Workbench } from './workbench.js';

const argumentsOf = { codex: codexArguments, pi: piArguments };

async function table(cli: 'codex' | 'pi', overrides: Partial<ExecuteRequest>): Promise<string> {
  await using bench = await Workbench.create();
  return argumentsOf[cli]('/bin/x', bench.request({ cwd: '/w', scratch: '/s', ...overrides })).join(' ');
}

describe('arguments of codex', () => {
  it.each([
    [{ permissions: 'safe' }, '--sandbox=read-only'],
    [{ permissions: 'unrestricted' }, '--dangerously-bypass-approvals-and-sandbox'],
    [{ model: '-gpt' }, '--model=-gpt'],
    [{ reasoning: 'off' }, '-c model_reasoning_effort="none"'],
    [{ reasoning: 'high' }, '-c model_reasoning_effort="high"'],
    [{ system: 'be terse' }, '-c model_instructions_file="/s/codex-instructions.md"'],
    [{}, '--cd=/w'],
  ] as [Partial<ExecuteRequest>, string][])('HA-11 %j becomes %s', async (overrides, expected) => {
    expect(await table('codex', overrides)).toContain(expected);
  });

  it('HA-11 adds nothing for what was not asked, and reads the prompt from stdin', async () => {
    expect(await table('codex', { permissions: 'safe' })).toBe(
      '/bin/x exec --json --ephemeral --skip-git-repo-check --color=never --sandbox=read-only --cd=/w -',
    );
  });
});

describe('arguments of pi', () => {
  it.each([
    [{ permissions: 'safe' }, '--tools read,grep,find,ls --no-extensions'],
    [{ model: 'openai/gpt' }, '--model openai/gpt'],
    [{ reasoning: 'off' }, '--thinking off'],
    [{ reasoning: 'medium' }, '--thinking medium'],
    [{ system: 'be terse' }, '--append-system-prompt /s/pi-instructions.md'],
  ] as [Partial<ExecuteRequest>, string][])('HA-11 %j becomes %s', async (overrides, expected) => {
    expect(await table('pi', overrides)).toContain(expected);
  });

  it('HA-11 adds nothing for what was not asked', async () => {
    expect(await table('pi', {})).toBe('/bin/x --mode json --no-session --print');
  });
});

describe.each(['codex', 'pi'] as const)('a run of %s', (cli) => {
  const secret = 'value-of-a-secret-key';
  const said = {
    prompt: 'PROMPT-MARK\n  with "quotes" and ž',
    system: 'SYSTEM-MARK',
    history: [{ role: 'user', content: 'HISTORY-MARK' }],
  } as const;

  it('HA-11 hands prompt, history, system text and secrets over outside the arguments', async () => {
    await using bench = await Workbench.create();
    const env = { REPLAY_FILE: recording(cli, 'text'), OPENAI_API_KEY: secret };
    finalOf(await collect(bench.replaying(cli, env).execute(bench.request(said))));
    const note = await bench.note();
    expect(note.argv.join('\n')).not.toMatch(/PROMPT-MARK|SYSTEM-MARK|HISTORY-MARK/);
    expect(note.argv.join('\n')).not.toContain(secret);
    expect(note.env['OPENAI_API_KEY']).toBe(secret);
    expect(note.stdin.endsWith(said.prompt)).toBe(true);
    expect(note.stdin).toContain('HISTORY-MARK');
    const file = note.argv.join('\n').match(/[^"\n=]*instructions\.md/)?.[0] ?? '';
    expect(await readFile(file, 'utf8')).toBe('SYSTEM-MARK');
  });

  it('HA-11 passes a prompt without history unchanged', async () => {
    await using bench = await Workbench.create();
    const prompt = `line\r\n\t${'ž'.repeat(300_000)} {"a":1}`;
    await collect(bench.replaying(cli, { REPLAY_FILE: recording(cli, 'text') }).execute(bench.request({ prompt })));
    const note = await bench.note();
    expect(note.stdin).toBe(prompt);
    expect(note.cwd).toBe(bench.directory);
  });

  it('HA-04 refuses a permission mode that it cannot enforce', async () => {
    await using bench = await Workbench.create();
    const events = collect(bench.replaying(cli).execute(bench.request({ permissions: 'supervised' })));
    await expect(events).rejects.toMatchObject({ code: 'UNSUPPORTED_FIELD', path: 'permissions' });
    expect(bench.launcher.launched).toEqual([]);
  });

  it('HA-12 gives the program nothing of the environment that is not on its list', async () => {
    await using bench = await Workbench.create();
    const env = {
      REPLAY_FILE: recording(cli, 'text'),
      LC_TIME: 'C.UTF-8',
      LANG: 'C.UTF-8',
      DATABASE_PASSWORD: 'not-yours',
      NODE_OPTIONS: '--title=x',
      NOTIFY_SOCKET: '/run/x',
      TMPDIR: '/elsewhere',
    };
    await collect(bench.replaying(cli, env).execute(bench.request()));
    const note = await bench.note();
    expect(note.env).toMatchObject({ LC_TIME: 'C.UTF-8', LANG: 'C.UTF-8', TERM: 'dumb', NO_COLOR: '1' });
    expect(note.env['TMPDIR']).toBe(bench.directory);
    for (const name of ['DATABASE_PASSWORD', 'NODE_OPTIONS', 'NOTIFY_SOCKET'])
      expect(note.env).not.toHaveProperty(name);
  });
});

describe('the environment of a program', () => {
  it('HA-12 can always start a program written for Node', () => {
    const { PATH } = programEnvironment({ path: '/usr/local/bin', env: {}, names: [], scratch: '/s' });
    expect(PATH).toBe(`/usr/local/bin:${process.execPath.replace(/\/[^/]+$/, '')}`);
  });

  it('HA-04 pi refuses a prompt of white space, which it would drop', async () => {
    await using bench = await Workbench.create();
    const events = collect(harness('pi', { path: '', env: {} }).execute(bench.request({ prompt: ' \n' })));
    await expect(events).rejects.toMatchObject({ code: 'REQUEST_INVALID', path: 'prompt' });
  });
});
