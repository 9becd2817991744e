import { filesBelow } from '../lib/fingerprint.mjs';
import { inRoot } from '../lib/project.mjs';
import { run } from '../lib/run.mjs';
import { clangTidy } from './clang-tidy.mjs';

/**
 * @typedef {object} Check
 * @property {string} name
 * @property {() => Promise<{ code: number, output: string }>} run exit code 0 only without a single warning
 */

/** @param {string} file below node_modules @param {...string} args */
const node = (file, ...args) => run(process.execPath, [inRoot('node_modules', file), ...args]);

const nativeFiles = () => filesBelow('native').filter((file) => /\.(cc|h)$/.test(file));

/** @type {readonly Check[]} */
export const checks = [
  {
    name: 'clang-tidy',
    run: clangTidy,
  },
  {
    name: 'clang-format',
    run: () => node('@wasm-fmt/clang-format/clang-format-cli.cjs', '--dry-run', '-Werror', ...nativeFiles()),
  },
  {
    name: 'biome',
    run: () => node('@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '--max-diagnostics=200', '.'),
  },
  {
    name: 'types',
    run: () => node('typescript-native/bin/tsc', '-p', 'tsconfig.test.json'),
  },
  {
    name: 'types-scripts',
    run: () => node('typescript-native/bin/tsc', '-p', 'tsconfig.scripts.json'),
  },
  {
    name: 'layers',
    run: () => node('dependency-cruiser/bin/dependency-cruise.mjs', '--config', '.dependency-cruiser.cjs', 'src'),
  },
  {
    name: 'processes',
    run: () => run(process.execPath, [inRoot('scripts/process-rule.mjs')]),
  },
  {
    name: 'unused-code',
    run: () => node('knip/bin/knip.js', '--no-progress', '--treat-config-hints-as-errors'),
  },
  {
    name: 'shellcheck',
    run: () => run('shellcheck', ['.ci/run']),
  },
];
