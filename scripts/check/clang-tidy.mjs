import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { filesBelow, fingerprint, writeStamp } from '../lib/fingerprint.mjs';
import { inRoot } from '../lib/project.mjs';
import { mustRun, run } from '../lib/run.mjs';

const BUILD = 'build/tidy';

/**
 * Runs clang-tidy over every C++ source, two at a time. A file that passed is not looked at again until it, a header,
 * the rules or clang-tidy change.
 * @returns {Promise<{ code: number, output: string }>}
 */
export async function clangTidy() {
  // The sources for Windows need headers that only the full tests have; those compile them with warnings as errors.
  const sources = filesBelow('native').filter((file) => file.endsWith('.cc') && !file.includes('/windows/'));
  const headers = filesBelow('native').filter((file) => file.endsWith('.h'));
  const { output: version } = await run('clang-tidy', ['--version']);
  const shared = fingerprint([...headers, '.clang-tidy', 'CMakeLists.txt'], version);
  // A Debug build: its flags hold nothing that clang does not know (link-time optimisation of g++, for example).
  await mustRun('cmake', 'cmake', ['-S', '.', '-B', BUILD, '-DCMAKE_BUILD_TYPE=Debug', '-DCMAKE_CXX_COMPILER=g++'], {
    log: 'build/logs/tidy-configure.log',
  });
  const waiting = [...sources];
  /** @type {string[]} */
  const problems = [];
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const mark = `${BUILD}/passed/${createHash('sha256')
        .update(shared)
        .update(readFileSync(inRoot(file)))
        .digest('hex')}`;
      if (existsSync(inRoot(mark))) continue;
      const { code, output } = await run('clang-tidy', ['-p', BUILD, '--quiet', file]);
      if (code === 0) writeStamp(mark, file);
      else problems.push(output);
    }
  };
  await Promise.all([worker(), worker()]);
  return { code: problems.length === 0 ? 0 : 1, output: problems.join('\n') };
}
