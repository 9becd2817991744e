import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { project } from '../../setup/project-copy.js';
import { runProgram } from '../../setup/run-program.js';

const DEADLINE_MS = 1_200_000;

it('SU-22 the path-sensitive analyser finds nothing', { timeout: DEADLINE_MS }, async () => {
  const sources = readdirSync(join(project, 'native'), { recursive: true, encoding: 'utf8' })
    // What is for Windows alone is no part of the build here.
    .filter((file) => file.endsWith('.cc') && !file.includes('windows/'))
    .map((file) => join(project, 'native', file));
  const build = join(project, 'build/tidy');
  const configure = await runProgram('cmake', ['-S', project, '-B', build, '-DCMAKE_BUILD_TYPE=Debug']);
  expect(configure, configure.stderr).toMatchObject({ code: 0 });
  const halves = [0, 1].map((half) => sources.filter((_, index) => index % 2 === half));
  const args = ['-p', build, '--quiet', '--checks=-*,clang-analyzer-*', '--warnings-as-errors=*'];
  const outcomes = await Promise.all(halves.map((files) => runProgram('clang-tidy', [...args, ...files])));
  for (const outcome of outcomes) expect(outcome, outcome.stdout).toMatchObject({ code: 0 });
});
