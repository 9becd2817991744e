import { spawnSync } from 'node:child_process';
import { link, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errnoOf, handIn, response, textOf, writeTemporary } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';

const CONFIG = `
[limits]
requests = 4
[agents.echo]
harness = "echo"
[agents.other]
harness = "echo"
[agents.full]
harness = "script"
[harness.codex]
program = "/nonexistent/codex"
[harness.script]
program = "/bin/sh"
args = ["-c", "cat >/dev/null; sleep 600"]
`;

let daemon: TestDaemon;
let agent: string;
beforeAll(async () => {
  daemon = await TestDaemon.start({ config: CONFIG });
  agent = daemon.agent('echo');
});
afterAll(() => daemon[Symbol.asyncDispose]());

async function errorOf(id: string): Promise<{ code: string; path?: string; advice: string }> {
  return JSON.parse(await readFile(join(agent, 'outbox', `${id}.error.json`), 'utf8'));
}

async function stillServes(id: string): Promise<void> {
  expect(await handIn(agent, id, { prompt: 'still here' })).toBeUndefined();
  expect((await response(agent, id)).text).toBe('still here');
}

describe('refusal', () => {
  it.each([
    ['not-json', 'hello', '(root)'],
    ['array', '[]', '(root)'],
    ['number', '{"prompt": 1}', 'prompt'],
    ['missing', '{}', 'prompt'],
    ['empty', '{"prompt": ""}', 'prompt'],
    ['unknown', '{"prompt": "x", "promt": "y"}', 'promt'],
    ['nested', '{"prompt": "x", "metadata": {"a": 1}}', 'metadata.a'],
    ['negative', '{"prompt": "x", "timeoutMs": -1}', 'timeoutMs'],
    ['session', '{"prompt": "x", "session": "../etc"}', 'session'],
    ['zero-bytes', '', undefined],
  ])('RQ-10 %s is EINVAL with the field path', async (id, content, path) => {
    expect(await handIn(agent, id, content)).toBe('EINVAL');
    const error = await errorOf(id);
    expect(error.code).toBe('REQUEST_INVALID');
    if (path !== undefined && id !== 'not-json') expect(error.path).toBe(path);
    expect(error.advice).not.toBe('');
  });

  it.each([
    ['bad-utf8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
    ['raw-nul', Buffer.from('{"prompt": "a\0b"}')],
    ['all-nul', Buffer.alloc(4096)],
  ])('RQ-11 %s is EINVAL', async (id, content) => {
    expect(await handIn(agent, id, content)).toBe('EINVAL');
    expect((await errorOf(id)).code).toBe('REQUEST_INVALID');
  });

  it('RQ-12 10 MiB is EFBIG and a prompt of 900 KiB is answered', async () => {
    expect(await handIn(agent, 'huge', Buffer.alloc(10 * 1024 * 1024, 0x61))).toBe('EFBIG');
    expect((await errorOf('huge')).code).toBe('REQUEST_TOO_LARGE');
    const prompt = 'p'.repeat(900 * 1024);
    expect(await handIn(agent, 'large', { prompt })).toBeUndefined();
    expect((await response(agent, 'large')).text).toBe(prompt);
  });

  it('RQ-13 names that are no request id are refused', async () => {
    const names = [
      'new\nline.req.json',
      '.hidden.req.json',
      '..req.json',
      'sp ace.req.json',
      'ü.req.json',
      '.req.json',
    ];
    for (const name of names) {
      const temporary = await writeTemporary(agent, '{"prompt": "x"}');
      expect([name, await errnoOf(rename(temporary, join(agent, 'inbox', name)))]).toEqual([name, 'EINVAL']);
    }
    const temporary = await writeTemporary(agent, '{"prompt": "x"}');
    const long = `${'n'.repeat(291)}.req.json`;
    expect(await errnoOf(rename(temporary, join(agent, 'inbox', long)))).toBe('ENAMETOOLONG');
    const longId = `${'n'.repeat(200)}.req.json`;
    expect(await errnoOf(rename(temporary, join(agent, 'inbox', longId)))).toBe('EINVAL');
    expect(await errnoOf(rename(temporary, `${agent}/inbox/../..`))).toMatch(
      /^E(BUSY|XDEV|NOTEMPTY|EXIST|ISDIR|ROFS)$/,
    );
    await stillServes('after-names');
  });

  it('RQ-14 only regular files can be made in an inbox', async () => {
    const inbox = join(agent, 'inbox');
    expect(await errnoOf(symlink('/etc/passwd', join(inbox, '.l')))).toBe('EPERM');
    expect(await errnoOf(mkdir(join(inbox, '.d')))).toBe('EPERM');
    const fifo = spawnSync('mkfifo', [join(inbox, '.f')], { encoding: 'utf8' });
    expect(fifo.status).not.toBe(0);
    expect(fifo.stderr).toMatch(/not permitted/i);
    const temporary = await writeTemporary(agent, '{"prompt": "x"}');
    expect(await errnoOf(link(temporary, join(inbox, 'linked.req.json')))).toBe('EPERM');
  });

  it('RQ-15 a rename from or to another directory is EXDEV', async () => {
    const outside = join(daemon.directory, 'outside.json');
    await writeFile(outside, '{"prompt": "x"}');
    expect(await errnoOf(rename(outside, join(agent, 'inbox', 'moved.req.json')))).toBe('EXDEV');
    const temporary = await writeTemporary(agent, '{"prompt": "x"}');
    const other = join(daemon.agent('other'), 'inbox', 'moved.req.json');
    expect(await errnoOf(rename(temporary, other))).toBe('EXDEV');
  });

  it('RQ-16 an agent that does not exist is ENOENT', async () => {
    const missing = daemon.agent('missing');
    expect(await errnoOf(writeFile(join(missing, 'inbox', '.x'), '{}'))).toBe('ENOENT');
    const temporary = await writeTemporary(agent, '{"prompt": "x"}');
    expect(await errnoOf(rename(temporary, join(missing, 'inbox', 'x.req.json')))).toBe('ENOENT');
  });

  it('RQ-17 a harness that is unknown or not installed is never replaced by another', async () => {
    expect(await handIn(agent, 'no-harness', { prompt: 'x', harness: 'nonesuch' })).toBe('EINVAL');
    expect(await errorOf('no-harness')).toMatchObject({ code: 'HARNESS_UNKNOWN', path: 'harness' });
    expect(await handIn(agent, 'not-installed', { prompt: 'x', harness: 'codex' })).toBeUndefined();
    expect(await response(agent, 'not-installed')).toMatchObject({
      outcome: 'failed',
      cause: 'route_unavailable',
      stage: 'routing',
      error: { code: 'HARNESS_UNAVAILABLE' },
    });
  });

  it('RQ-18 too many open requests are EAGAIN', async () => {
    const full = daemon.agent('full');
    const answers: (string | undefined)[] = [];
    for (let index = 0; index < 6; index++) answers.push(await handIn(full, `full-${index}`, { prompt: 'x' }));
    expect(answers).toEqual([undefined, undefined, undefined, undefined, 'EAGAIN', 'EAGAIN']);
  });

  it('RQ-19 a refusal leaves the file as it was', async () => {
    const temporary = await writeTemporary(agent, '{"prompt": 1}');
    expect(await errnoOf(rename(temporary, join(agent, 'inbox', 'kept.req.json')))).toBe('EINVAL');
    expect(await readFile(temporary, 'utf8')).toBe('{"prompt": 1}');
    expect(await textOf(join(agent, 'outbox', 'kept.resp.json'))).toBe('');
    await writeFile(temporary, '{"prompt": "mended"}');
    await rename(temporary, join(agent, 'inbox', 'kept.req.json'));
    expect((await response(agent, 'kept')).text).toBe('mended');
    expect(await textOf(join(agent, 'outbox', 'kept.error.json'))).toBe('');
  });
});
