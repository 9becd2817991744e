import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.js';
import type { EventRow } from '../../src/contract/events.js';
import type { Response } from '../../src/contract/terminal.js';
import { bridle, start, TestDaemon, until } from './support.js';

/** The prompt, a word in the JSON on standard input, says how the harness behaves. */
const SCRIPT = `
input=$(cat)
case "$input" in
  *'"prompt":"fail"'*) echo '{"type":"text","text":"half"}'; exit 3 ;;
  *'"prompt":"hang"'*) sleep 600 ;;
  *'"prompt":"slow"'*) while [ ! -e "$(dirname "$0")/go" ]; do sleep 0.02; done; echo '{"type":"text","text":"late"}' ;;
  *'"prompt":"steps"'*)
    echo '{"type":"text","text":"one"}'
    echo '{"type":"tool.call","call":"1","name":"shell","input":{}}'
    echo '{"type":"text","text":"two"}' ;;
esac
`;

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ script: SCRIPT });
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
});

const run = async (...words: string[]) => await bridle(['run', ...words], { env: daemon.env });

describe('bridle run', () => {
  it('SU-53 prints the text alone on standard output and exits 0', async () => {
    const { code, stdout, stderr } = await run('--harness', 'echo', 'hello there');
    expect(stderr).toBe('');
    expect(stdout).toBe('hello there\n');
    expect(code).toBe(0);
  });

  it('SU-53 reads the prompt from standard input', async () => {
    const text = 'x'.repeat(900 * 1024);
    const { code, stdout } = await bridle(['run', '--harness', 'echo', '-'], { env: daemon.env, input: text });
    expect(code).toBe(0);
    expect(stdout).toBe(`${text}\n`);
  });

  it('SU-53 starts a new line where the text was interrupted', async () => {
    const { code, stdout } = await run('--harness', 'script', 'steps');
    expect(code).toBe(0);
    expect(stdout).toBe('one\ntwo\n');
  });

  it('SU-54 a failed run exits 1 and says why on standard error', async () => {
    const { code, stdout, stderr } = await run('--harness', 'script', 'fail');
    expect(code).toBe(1);
    expect(stdout).toBe('half\n');
    expect(stderr).toContain('the run failed (harness_failed at harness)');
  });

  it('SU-54 a run that times out exits 124', async () => {
    const { code, stderr } = await run('--harness', 'script', '--timeout', '200', 'hang');
    expect(code).toBe(124);
    expect(stderr).toContain('timed out');
  });

  it('SU-55 --json prints the event rows as they are, then the response', async () => {
    const { code, stdout } = await run('--json', '--harness', 'echo', 'hello');
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    const response = JSON.parse(lines.at(-1) ?? '') as Response;
    expect(response.schema).toBe('bridle.response/v1');
    expect(response.text).toBe('hello');
    const outbox = join(daemon.mount, 'agents/default/outbox');
    expect(`${lines.slice(0, -1).join('\n')}\n`).toBe(
      await readFile(join(outbox, `${response.id}.events.jsonl`), 'utf8'),
    );
    const rows = lines.slice(0, -1).map((line) => JSON.parse(line) as EventRow);
    expect(rows.map((row) => row.seq)).toEqual(rows.map((_, index) => index + 1));
    expect(rows.at(-1)?.type).toBe('run.terminal');
  });

  it.each([
    [['--harness', 'nosuch', 'x'], 65, 'HARNESS_UNKNOWN'],
    [['--agent', 'nosuch', 'x'], 66, 'AGENT_UNKNOWN'],
    [['--harness', 'echo', ''], 65, 'REQUEST_INVALID'],
    [['--session', '../up', 'x'], 65, 'REQUEST_INVALID'],
  ])('SU-56 the refusal of %j exits %i with %s', async (words, exit, code) => {
    const ended = await run('--json', ...words);
    expect(ended.stdout).toBe('');
    expect((JSON.parse(ended.stderr) as ErrorBody).code).toBe(code);
    expect(ended.code).toBe(exit);
  });

  it('SU-56 a refused request leaves no temporary file in the inbox', async () => {
    await run('--harness', 'nosuch', 'x');
    expect(await readdir(join(daemon.mount, 'agents/default/inbox'))).toEqual([]);
  });

  it('SU-57 Ctrl-C leaves the run alone and says how to look at it', async () => {
    const { child, ended } = start(['run', '--json', '--harness', 'script', 'slow'], { env: daemon.env });
    let rows = '';
    child.stdout?.on('data', (text: string) => (rows += text));
    await until('the run has started', () => rows.includes('"run.started"'));
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).toBe(130);
    const response = /cat (\S+\.resp\.json)/.exec(stderr)?.[1] ?? '';
    await writeFile(join(daemon.directory, 'go'), '');
    await until(
      'the response is there',
      async () =>
        await stat(response).then(
          () => true,
          () => false,
        ),
    );
    expect((JSON.parse(await readFile(response, 'utf8')) as Response).text).toBe('late');
  });

  it('SU-58 follows its run over a restart of the daemon; a cancelled one exits 130', async () => {
    const { child, ended } = start(['run', '--json', '--harness', 'script', 'hang'], { env: daemon.env });
    let rows = '';
    child.stdout?.on('data', (text: string) => (rows += text));
    await until('the run has started', () => rows.includes('"run.started"'));
    await daemon.stop('SIGKILL');
    await daemon.start();
    const { code, stdout } = await ended;
    expect(code).toBe(130);
    const seqs = stdout
      .trimEnd()
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as EventRow).seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  });
});
