import { describe, expect, it } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.js';
import { bridle } from './support.js';

const COMMANDS = [
  ['daemon'],
  ['run'],
  ['status'],
  ['doctor'],
  ['sessions', 'list'],
  ['sessions', 'show'],
  ['sessions', 'tail'],
  ['demo'],
  ['completion'],
  ['man'],
];

describe('help and usage', () => {
  it.each(COMMANDS.map((words) => words.join(' ')))('SU-50 help of %s shows examples and exits 0', async (words) => {
    const { code, stdout } = await bridle([...words.split(' '), '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: bridle /);
    expect(stdout).toContain('Examples:\n  bridle ');
  });

  it('SU-50 the help of bridle lists every command', async () => {
    const { code, stdout } = await bridle(['--help']);
    expect(code).toBe(0);
    for (const [name] of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
  });

  it.each([
    [['frobnicate'], 'frobnicate'],
    [['status', '--frobnicate'], 'frobnicate'],
    [['run'], 'prompt'],
    [['run', '--timeout', 'soon', 'x'], 'milliseconds'],
    [['completion', 'tcsh'], 'tcsh'],
    [[], 'command'],
  ])('SU-51 usage error of %j names the culprit, advises and exits 64', async (words, culprit) => {
    const { code, stderr } = await bridle(words);
    expect(code).toBe(64);
    expect(stderr).toContain(culprit);
    expect(stderr).toContain('bridle --help');
  });

  it('SU-51 an error with --json is one ErrorBody on standard error', async () => {
    const { code, stdout, stderr } = await bridle(['sessions', 'show', '--json']);
    expect(code).toBe(64);
    expect(stdout).toBe('');
    const body = JSON.parse(stderr) as ErrorBody;
    expect(body.code).toBe('USAGE_INVALID');
    expect(body.message).toContain('session');
  });

  it.each([
    ['run', 'hello'],
    ['status', '--json'],
    ['sessions', 'list'],
    ['sessions', 'show', 'x'],
    ['sessions', 'tail', 'x'],
  ])('SU-52 %s %s says that no daemon runs, and where, and exits 69', async (...words) => {
    const { code, stderr } = await bridle(words, { env: { BRIDLE_MOUNT: '/nonexistent/bridle' } });
    expect(code).toBe(69);
    expect(stderr).toContain('/nonexistent/bridle');
    expect(stderr).toContain('bridle daemon');
  });

  it('SU-52 --mount comes before $BRIDLE_MOUNT', async () => {
    const { stderr } = await bridle(['status', '--mount', '/nonexistent/given'], {
      env: { BRIDLE_MOUNT: '/nonexistent/env' },
    });
    expect(stderr).toContain('/nonexistent/given');
    expect(stderr).not.toContain('/nonexistent/env');
  });
});
