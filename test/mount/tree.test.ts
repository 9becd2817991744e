import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errnoOf, handIn, response } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';
import { until } from '../support/until.js';

const CONFIG = `
[agents.reviewer]
harness = "echo"
model = "some-model"
system = "Be brief."
`;

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.end();
  await writeFile(daemon.configFile, `${CONFIG}[harness.codex]\nprogram = "${daemon.directory}/codex"\n`);
  await daemon.start();
});
afterAll(() => daemon[Symbol.asyncDispose]());

async function modesOf(directory: string): Promise<Record<string, string>> {
  const entries = await readdir(directory);
  const modes = await Promise.all(entries.map(async (name) => (await stat(join(directory, name))).mode & 0o7777));
  return Object.fromEntries(entries.map((name, index) => [name, (modes[index] ?? 0).toString(8)]));
}

describe('the tree', () => {
  it('LC-61 MT-30 the root holds the object classes and nothing else', async () => {
    expect(await modesOf(daemon.mount)).toEqual({
      'README.md': '444',
      version: '444',
      status: '444',
      'status.json': '444',
      'audit.jsonl': '400',
      agents: '755',
      harnesses: '555',
    });
    expect(await readFile(join(daemon.mount, 'README.md'), 'utf8')).toContain('.req.json');
    const status = JSON.parse(await readFile(join(daemon.mount, 'status.json'), 'utf8'));
    expect(status).toMatchObject({ schema: 'bridle.status/v1', state: 'ready', pid: daemon.pid });
    expect(['cgroup+subreaper', 'subreaper']).toContain(status.boundary);
    // Where a boundary is weaker, that is said.
    expect(status.weakness === null).toBe(status.boundary === 'cgroup+subreaper');
    expect(Object.keys(status)).toEqual(expect.arrayContaining(['identity', 'landlock', 'limits']));
    const echo = JSON.parse(await readFile(join(daemon.mount, 'harnesses', 'echo', 'info.json'), 'utf8'));
    expect(echo).toMatchObject({ schema: 'bridle.harness/v1', name: 'echo', kind: 'builtin', healthy: true });
  });

  it('MT-31 agents come from the configuration and from mkdir', async () => {
    const agents = join(daemon.mount, 'agents');
    expect((await readdir(agents)).sort()).toEqual(['default', 'reviewer']);
    expect(await readFile(join(agents, 'reviewer', 'system.md'), 'utf8')).toBe('Be brief.');
    await mkdir(join(agents, 'made'));
    expect(await modesOf(join(agents, 'made'))).toEqual({
      model: '600',
      harness: '600',
      'system.md': '600',
      inbox: '700',
      outbox: '500',
      sessions: '500',
    });
    expect(await handIn(join(agents, 'made'), 'first', { prompt: 'hi', harness: 'echo' })).toBeUndefined();
    expect((await response(join(agents, 'made'), 'first')).text).toBe('hi');
    expect(await errnoOf(mkdir(join(agents, 'made')))).toBe('EEXIST');
    expect(await errnoOf(mkdir(join(agents, 'Not_A_Name')))).toBe('EINVAL');
    expect(await errnoOf(mkdir(join(daemon.mount, 'elsewhere')))).toBe('EROFS');
    // The mode bits stop everybody but root; root is stopped by the mount.
    const refusal = process.getuid?.() === 0 ? 'EROFS' : 'EACCES';
    expect(await errnoOf(mkdir(join(agents, 'made', 'sessions', 's')))).toBe(refusal);
  });

  it('MT-32 a control is replaced by one write and the next run sees it', async () => {
    const agent = daemon.agent('default');
    await writeFile(join(agent, 'harness'), 'echo\n');
    expect(await readFile(join(agent, 'harness'), 'utf8')).toBe('echo\n');
    expect(await handIn(agent, 'by-control', { prompt: 'x' })).toBeUndefined();
    expect(await response(agent, 'by-control')).toMatchObject({ outcome: 'success', harness: 'echo' });
    await writeFile(join(agent, 'harness'), '\n');
    expect(await readFile(join(agent, 'harness'), 'utf8')).toBe('');
  });

  it.each([
    ['harness', 'two words', 'EINVAL'],
    ['harness', 'UPPER', 'EINVAL'],
    ['harness', Buffer.from([0x61, 0xff]), 'EINVAL'],
    ['model', 'a\0b', 'EINVAL'],
    ['system.md', Buffer.from([0xc3, 0x28]), 'EINVAL'],
    ['system.md', 's'.repeat(64 * 1024 + 1), 'EMSGSIZE'],
  ])('MT-33 %s refuses an invalid value (%#)', async (control, value, errno) => {
    const path = join(daemon.agent('reviewer'), control);
    const before = await readFile(path);
    expect(await errnoOf(writeFile(path, value))).toBe(errno);
    expect(await readFile(path)).toEqual(before);
  });

  it('MT-39 info.json follows the health of its harness', async () => {
    const program = join(daemon.directory, 'codex');
    const info = async () => JSON.parse(await readFile(join(daemon.mount, 'harnesses', 'codex', 'info.json'), 'utf8'));
    expect(await info()).toMatchObject({ healthy: false });
    await writeFile(program, '#!/bin/sh\n', { mode: 0o755 });
    await until(async () => (await info()).healthy === true, 'the program is seen');
    await rm(program);
    await until(async () => (await info()).healthy === false, 'its absence is seen');
  });

  it('MT-34 nothing else can be changed', async () => {
    const { mount } = daemon;
    expect(await errnoOf(writeFile(join(mount, 'version'), 'x'))).toMatch(/^E(ROFS|ACCES)$/);
    expect(await errnoOf(writeFile(join(mount, 'new'), 'x'))).toBe('EROFS');
    expect(await errnoOf(rm(join(mount, 'README.md')))).toBe('EROFS');
    expect(await errnoOf(rename(join(mount, 'status'), join(mount, 'version')))).toBe('EROFS');
    expect(await errnoOf(rm(join(daemon.agent(), 'model')))).toBe('EROFS');
    expect(await errnoOf(utimes(join(mount, 'version'), 1, 1))).toBe('EPERM');
  });
});
