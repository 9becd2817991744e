import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageRow } from '../../src/contract/events.js';
import { bridle, start, TestDaemon, until } from './support.js';

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  for (const prompt of ['first', 'second']) {
    await bridle(['run', '--harness', 'echo', '--session', 'talk', prompt], { env: daemon.env });
  }
  await bridle(['run', '--harness', 'echo', '--session', 'other', 'elsewhere'], { env: daemon.env });
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
});

const sessions = async (...words: string[]) => await bridle(['sessions', ...words], { env: daemon.env });

describe('bridle sessions and status', () => {
  it('SU-59 list shows every session, newest first', async () => {
    const { code, stdout } = await sessions('list');
    expect(code).toBe(0);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s+/));
    expect(rows[0]).toEqual(['AGENT', 'SESSION', 'STATE', 'RUNS', 'UPDATED']);
    expect(rows.slice(1).map((row) => row.slice(0, 4))).toEqual([
      ['default', 'other', 'idle', '1'],
      ['default', 'talk', 'idle', '2'],
    ]);
  });

  it('SU-59 show prints the messages', async () => {
    const { stdout } = await sessions('show', 'talk');
    expect(stdout.replace(/ \d{4}-\S+$/gm, '')).toBe(
      'user\nfirst\n\nassistant\nfirst\n\nuser\nsecond\n\nassistant\nsecond\n\n',
    );
  });

  it('SU-59 show --json prints the rows of messages.jsonl', async () => {
    const { stdout } = await sessions('show', 'talk', '--json');
    expect(stdout).toBe(await readFile(join(daemon.mount, 'agents/default/sessions/talk/messages.jsonl'), 'utf8'));
    expect((JSON.parse(stdout.split('\n')[0] ?? '') as MessageRow).content).toBe('first');
  });

  it('SU-59 tail prints the newest events', async () => {
    const { stdout } = await sessions('tail', '-n', '1', 'talk');
    expect(stdout).toMatch(/^\d+ \S+ run\.terminal success \(completed\)\n$/);
  });

  it('SU-59 tail -f goes on with events of later runs', async () => {
    const { child, ended } = start(['sessions', 'tail', '-f', '--json', 'talk'], { env: daemon.env });
    let rows = '';
    child.stdout?.on('data', (text: string) => (rows += text));
    await until('the old events', () => rows.includes('"run.terminal"'));
    await bridle(['run', '--harness', 'echo', '--session', 'talk', 'third'], { env: daemon.env });
    await until(
      'the new events',
      () => rows.includes('third') && rows.trimEnd().split('\n').at(-1)?.includes('run.terminal') === true,
    );
    child.kill('SIGINT');
    expect((await ended).code).toBe(0);
    const seqs = rows
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { seq: number }).seq);
    expect(seqs).toEqual(seqs.map((_, index) => (seqs[0] ?? 0) + index));
  });

  it('SU-59 a session that does not exist exits 66', async () => {
    const { code, stderr } = await sessions('show', 'nosuch');
    expect(code).toBe(66);
    expect(stderr).toContain('nosuch');
  });

  it('SU-60 status prints the status files of the mount', async () => {
    const { code, stdout } = await bridle(['status'], { env: daemon.env });
    expect(code).toBe(0);
    expect(stdout).not.toBe('');
    const { stdout: json } = await bridle(['status', '--json'], { env: daemon.env });
    expect(JSON.parse(json)).toBeTypeOf('object');
  });
});
