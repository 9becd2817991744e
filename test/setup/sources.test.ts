import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { project } from './project-copy.js';

const MAX_LINES = 400;

const sources = ['src', 'native', 'test', 'scripts', 'bench', 'fixtures']
  .flatMap((folder) =>
    readdirSync(join(project, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  )
  .filter((file) => /\.(ts|mjs|cjs|cc|h)$/.test(file))
  .map((file) => ({ file, text: readFileSync(join(project, file), 'utf8') }));

/** Spelt in parts, so that this file does not find itself. */
const suppressions = [
  '@ts-' + 'ignore',
  '@ts-' + 'expect-error',
  '@ts-' + 'nocheck',
  'biome-' + 'ignore',
  'NO' + 'LINT',
  '#pragma GCC ' + 'diagnostic',
  'clang-format ' + 'off',
];

describe('source files', () => {
  it(`SU-21 have at most ${MAX_LINES} lines`, () => {
    const long = sources.filter(({ text }) => text.split('\n').length - 1 > MAX_LINES);
    expect(sources.length).toBeGreaterThan(50);
    expect(long.map(({ file }) => file)).toEqual([]);
  });

  it.each(suppressions)('SU-21 hold no %s', (suppression) => {
    const found = sources.filter(({ text }) => text.includes(suppression));
    expect(found.map(({ file }) => file)).toEqual([]);
  });
});
