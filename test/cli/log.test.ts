import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/daemon/log.js';

/** What the log holds after `use`, with the environment that `env` makes of the log file's identity. */
async function logged(
  use: (log: Logger) => void,
  options: { journal?: boolean; isTerminal?: boolean } = {},
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'bridle-log-'));
  const path = join(directory, 'log');
  const handle = await open(path, 'a');
  try {
    const { dev, ino } = await handle.stat();
    const env = options.journal === undefined ? {} : { JOURNAL_STREAM: `${dev}:${options.journal ? ino : ino + 1}` };
    use(createLogger({ fd: handle.fd, env, isTerminal: options.isTerminal ?? false, level: 'debug' }));
    return await readFile(path, 'utf8');
  } finally {
    await handle.close();
    await rm(directory, { recursive: true, force: true });
  }
}

describe('the log', () => {
  it('SU-66 is one JSON object a line', async () => {
    const text = await logged((log) => log.info({ run: 'r-1' }, 'run ended'));
    expect(text.endsWith('\n')).toBe(true);
    expect(JSON.parse(text)).toMatchObject({ level: 30, run: 'r-1', msg: 'run ended' });
  });

  it('SU-66 has a priority in front of each line where the journal reads it', async () => {
    const text = await logged(
      (log) => {
        log.debug('a');
        log.info('b');
        log.warn('c');
        log.error('d');
        log.fatal('e');
      },
      { journal: true },
    );
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.slice(0, 4)),
    ).toEqual(['<7>{', '<6>{', '<4>{', '<3>{', '<2>{']);
  });

  it('SU-66 has none when JOURNAL_STREAM is about another descriptor', async () => {
    expect(await logged((log) => log.info('a'), { journal: false })).toMatch(/^\{/);
  });

  it('SU-66 is text on a terminal', async () => {
    const text = await logged((log) => log.info('run ended'), { isTerminal: true });
    expect(text).toContain('INFO');
    expect(text).toContain('run ended');
    expect(text).not.toContain('"msg"');
  });

  it('SU-67 holds no prompt, no text of an agent and no secret', async () => {
    const text = await logged((log) => {
      log.info({ prompt: 'my plan', request: { prompt: 'my plan' }, run: { request: { prompt: 'my plan' } } }, 'x');
      log.info({ env: { OPENAI_API_KEY: 'k' }, apiKey: 'hidden-1', config: { password: 'hidden-2' } }, 'x');
      log.error(new Error('401 for key sk-proj-abcdefghijklmnop1234 and Bearer abcdefgh12345678'), 'failed');
    });
    expect(text).not.toMatch(/my plan|hidden|OPENAI|sk-proj-|abcdefgh12345678/);
    expect(text).toContain('[removed]');
    for (const line of text.trimEnd().split('\n')) expect(JSON.parse(line)).toBeTypeOf('object');
  });
});
