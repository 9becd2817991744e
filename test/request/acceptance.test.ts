import { appendFile, open, readdir, readFile, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageRow } from '../../src/contract/events.js';
import { errnoOf, handIn, response, rows, writeTemporary } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';
import { until } from '../support/until.js';

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ config: '[agents.echo]\nharness = "echo"\n' });
});
afterAll(() => daemon[Symbol.asyncDispose]());

describe('acceptance', () => {
  it('RQ-01 only the rename submits', async () => {
    const agent = daemon.agent('echo');
    await writeTemporary(agent, JSON.stringify({ prompt: 'never handed in' }));
    const refused = join(agent, 'inbox', 'direct.req.json');
    expect(await errnoOf(writeFile(refused, JSON.stringify({ prompt: 'written in place' })))).toBe('EPERM');
    expect(await handIn(agent, 'after', { prompt: 'handed in' })).toBeUndefined();
    await response(agent, 'after');
    const accepted = (await rows<{ type: string; request: string }>(join(daemon.mount, 'audit.jsonl'))).filter(
      (row) => row.type === 'request.accepted',
    );
    expect(accepted.map((row) => row.request)).toEqual(['after']);
  });

  it('RQ-03 the same id with the same content replays, with other content is EEXIST', async () => {
    const agent = daemon.agent('echo');
    expect(await handIn(agent, 'twice', { prompt: 'one' })).toBeUndefined();
    const first = await response(agent, 'twice');
    expect(await handIn(agent, 'twice', { prompt: 'one' })).toBeUndefined();
    expect(await handIn(agent, 'twice', { prompt: 'two' })).toBe('EEXIST');
    expect(await response(agent, 'twice')).toEqual(first);
    const error = JSON.parse(await readFile(join(agent, 'outbox', 'twice.error.json'), 'utf8'));
    expect(error).toMatchObject({ schema: 'bridle.error/v1', id: 'twice', code: 'REQUEST_CONFLICT' });
    const runs = (await rows(join(agent, 'outbox', 'twice.events.jsonl'))).map((row) => row.run);
    expect(new Set(runs).size).toBe(1);
  });

  it('RQ-06 a handle that is still open cannot change an accepted request', async () => {
    const agent = daemon.agent('echo');
    const path = join(agent, 'inbox', '.held.tmp');
    await using handle = await open(path, 'w');
    await handle.write('{"prompt":"first"}');
    await rename(path, join(agent, 'inbox', 'held.req.json'));
    expect(['EROFS', 'ESTALE', 'ENOENT']).toContain(await errnoOf(handle.write('garbage', 0)));
    expect((await response(agent, 'held')).text).toBe('first');
  });

  it('RQ-05 fsync of the inbox returns after acceptance is on disk', async () => {
    const agent = daemon.agent('echo');
    expect(await handIn(agent, 'synced', { prompt: 'to disk' })).toBeUndefined();
    await using inbox = await open(join(agent, 'inbox'), 'r');
    await inbox.sync();
    const places = ['journal', 'queue'].map((name) => join(daemon.state, name));
    const files = (
      await Promise.all(places.map(async (place) => (await readdir(place)).map((name) => join(place, name))))
    ).flat();
    const journal = await Promise.all(files.map((path) => readFile(path, 'utf8')));
    expect(journal.join('')).toContain('"id":"synced"');
  });

  it('RQ-22 RQ-23 events are gap-free, end in one terminal row, and the request leaves the inbox', async () => {
    const agent = daemon.agent('echo');
    expect(
      await handIn(agent, 'whole', { prompt: 'a b c', session: 'numbers', metadata: { ticket: '7' } }),
    ).toBeUndefined();
    const answer = await response(agent, 'whole');
    expect(answer).toMatchObject({
      schema: 'bridle.response/v1',
      id: 'whole',
      session: 'numbers',
      outcome: 'success',
      cause: 'completed',
      text: 'a b c',
      usage: { inputTokens: null, outputTokens: null },
      cost: { usd: null, source: 'unknown' },
      metadata: { ticket: '7' },
    });
    const events = await rows(join(agent, 'outbox', 'whole.events.jsonl'));
    expect(events.map((row) => row.seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.filter((row) => row.type === 'run.terminal')).toHaveLength(1);
    expect(events.at(-1)?.type).toBe('run.terminal');
    const session = join(agent, 'sessions', 'numbers');
    expect(await rows(join(session, 'events.jsonl'))).toEqual(events);
    expect(JSON.parse(await readFile(join(session, 'runs', answer.run, 'terminal.json'), 'utf8'))).toMatchObject({
      outcome: 'success',
    });
    expect((await readFile(join(session, 'latest.md'), 'utf8')).trim()).toBe('a b c');
    await until(async () => !(await readdir(join(agent, 'inbox'))).includes('whole.req.json'), 'the inbox is clear');
  });

  it('RQ-24 requests of one session run in order of acceptance', async () => {
    const agent = daemon.agent('echo');
    const ids = Array.from({ length: 12 }, (_, index) => `line-${index}`);
    for (const id of ids) expect(await handIn(agent, id, { prompt: id, session: 'line' })).toBeUndefined();
    await Promise.all(ids.map((id) => response(agent, id)));
    const messages = await rows<MessageRow>(join(agent, 'sessions', 'line', 'messages.jsonl'));
    expect(messages.filter((row) => row.role === 'user').map((row) => row.content)).toEqual(ids);
    const events = await rows(join(agent, 'sessions', 'line', 'events.jsonl'));
    const order = events.map((row) => row.run).filter((run, index, all) => run !== all[index - 1]);
    expect(order).toHaveLength(ids.length);
  });

  it('RQ-28 acceptance, refusal, replay and answer are audited', async () => {
    const agent = daemon.agent('echo');
    await handIn(agent, 'audited', { prompt: 'x' });
    await handIn(agent, 'audited', { prompt: 'x' });
    await handIn(agent, 'audited', { prompt: 'y' });
    await response(agent, 'audited');
    type Row = { type: string; request?: string };
    const audit = join(daemon.mount, 'audit.jsonl');
    const types = async () =>
      (await rows<Row>(audit)).filter((row) => row.request?.startsWith('audited')).map((row) => row.type);
    await until(async () => (await types()).length === 4, 'four audit rows');
    expect((await types()).sort()).toEqual([
      'request.accepted',
      'request.answered',
      'request.refused',
      'request.replayed',
    ]);
    // The mode bits stop everybody but root; root is stopped by the mount.
    const refusal = process.getuid?.() === 0 ? 'EROFS' : 'EACCES';
    expect(await errnoOf(appendFile(audit, 'forged'))).toBe(refusal);
    expect(await errnoOf(truncate(audit, 0))).toBe(refusal);
  });
});
