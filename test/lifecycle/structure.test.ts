import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const SOURCES = resolve(import.meta.dirname, '../../src');

/** Each way to start or signal a process: modules, the process object, and our own addon's calls. */
const PRIMITIVES = [
  /(?:from|import|require)\s*\(?\s*['"](?:node:)?(?:child_process|cluster)['"]/,
  /\bgetBuiltinModule\s*\(/,
  /\bprocess\s*(?:\?\.|\.)\s*(?:kill|abort|binding|dlopen)\b/,
  /\bprocess\s*\[\s*['"](?:kill|binding|dlopen)['"]\s*\]/,
  /\b(?:spawnSupervisor|signalProcess)\b/,
];
const ALLOWED = [/^lifecycle\//, /^native\/process\.ts$/];

function offences(source: string): string[] {
  return source.split('\n').filter((line) => PRIMITIVES.some((primitive) => primitive.test(line)));
}

describe('process primitives', () => {
  it('LC-62 are used by src/lifecycle alone', () => {
    const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    expect(files).toContain(join('lifecycle', 'supervisor.ts'));
    const found = files
      .filter((file) => !ALLOWED.some((allowed) => allowed.test(file)))
      .flatMap((file) => offences(readFileSync(join(SOURCES, file), 'utf8')).map((line) => `${file}: ${line.trim()}`));
    expect(found).toEqual([]);
  });

  it.each([
    `import { spawn } from 'node:child_process';`,
    `import * as child from "child_process";`,
    `const { fork } = await import('node:child_process');`,
    `const { exec } = require('child_process');`,
    `import cluster from 'node:cluster';`,
    `process.getBuiltinModule('child_process')`,
    `process.kill(pid, 'SIGTERM');`,
    `process['kill'](pid);`,
    `import { signalProcess } from '../native/process.js';`,
    `import { spawnSupervisor } from '../native/process.js';`,
  ])('LC-62 the search finds %s', (line) => {
    expect(offences(`const before = 1;\n  ${line}\n`)).toEqual([`  ${line}`]);
  });

  it.each(['process.exit(1);', '// child_process is not used here', `import { kill } from './kill.js';`])(
    'LC-62 the search passes %s',
    (line) => {
      expect(offences(line)).toEqual([]);
    },
  );

  it('LC-62 bites in the one place that may use them', () => {
    expect(offences(readFileSync(join(SOURCES, 'lifecycle/supervisor.ts'), 'utf8'))).not.toEqual([]);
  });
});
