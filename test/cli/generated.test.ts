import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../src/contract/errors.js';
import { bridle } from './support.js';

const COMPLETE = fileURLToPath(new URL('../../fixtures/cli/complete.bash', import.meta.url));

/** What bash offers for a command line whose last word is being completed. */
async function completions(...words: string[]): Promise<string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'bridle-completion-'));
  try {
    const { stdout } = await bridle(['completion', 'bash']);
    const script = join(directory, 'bridle');
    await writeFile(script, stdout);
    const output = execFileSync('bash', [COMPLETE, script, ...words], { encoding: 'utf8' });
    return output.trim().split('\n');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('what is made from the commands', () => {
  it('SU-63 the bash completion offers commands, subcommands, options and choices', async () => {
    expect(await completions('')).toEqual(expect.arrayContaining(['daemon', 'run', 'status', 'sessions', '--mount']));
    expect(await completions('se')).toEqual(['sessions']);
    expect(await completions('sessions', 't')).toEqual(['tail']);
    expect(await completions('sessions', 'tail', '--f')).toEqual(['--follow']);
    expect(await completions('run', '--har')).toEqual(['--harness']);
    expect(await completions('completion', 'z')).toEqual(['zsh']);
  });

  it.each(['zsh', 'fish'])('SU-63 the %s completion names every command', async (shell) => {
    const { code, stdout } = await bridle(['completion', shell]);
    expect(code).toBe(0);
    for (const word of ['daemon', 'run', 'status', 'doctor', 'sessions', 'tail', 'demo', 'harness']) {
      expect(stdout).toContain(word);
    }
  });

  it('SU-64 the manual page has every command, every option and every error code', async () => {
    const { stdout } = await bridle(['man']);
    const { stdout: help } = await bridle(['--help']);
    const commands = [...help.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1]).filter((name) => name !== 'help');
    for (const name of commands) {
      if (name === 'bridle') continue;
      expect(stdout).toMatch(new RegExp(`^\\.Ss ${name}\\b`, 'm'));
      const { stdout: own } = await bridle([name ?? '', '--help']);
      for (const [, flag] of own.matchAll(/^ {2}(?:-\w, )?--([a-z]+)/gm)) expect(stdout).toContain(`Fl -${flag}`);
    }
    for (const code of Object.keys(ERRORS)) expect(stdout).toContain(`.It Er ${code}\n`);
  });

  it('SU-65 docs/errors.md is the table of errors', async () => {
    const text = await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    const rows = [...text.matchAll(/^\| `([A-Z_]+)` *\| `([A-Z]+)` *\| (\d+) *\| (.+?) *\|$/gm)].map((match) =>
      match.slice(1),
    );
    const table = Object.entries(ERRORS).map(([code, { errno, exit, advice }]) => [code, errno, String(exit), advice]);
    expect(rows).toEqual(table);
  });
});
