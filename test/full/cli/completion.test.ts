import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bridle } from '../../cli/support.js';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bridle-completion-'));
  for (const shell of ['zsh', 'fish']) {
    await writeFile(join(directory, shell), (await bridle(['completion', shell])).stdout);
  }
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

function fish(line: string): string[] {
  const ask = `source ${join(directory, 'fish')}; complete -C '${line}'`;
  const output = execFileSync('fish', ['--no-config', '-c', ask], { encoding: 'utf8' });
  return output
    .trim()
    .split('\n')
    .map((offer) => offer.split('\t')[0] ?? '');
}

describe('completions in real shells', () => {
  it('SU-72 fish offers commands, subcommands and options', () => {
    expect(fish('bridle se')).toEqual(['sessions']);
    expect(fish('bridle sessions ')).toEqual(expect.arrayContaining(['list', 'show', 'tail']));
    expect(fish('bridle run --har')).toEqual(['--harness']);
  });

  it('SU-72 zsh loads the script and completes with it', () => {
    const ask = `autoload -U compinit; compinit -u -D; source ${join(directory, 'zsh')}; print $_comps[bridle]`;
    expect(execFileSync('zsh', ['-fc', ask], { encoding: 'utf8' })).toBe('_bridle\n');
  });
});
