import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { project } from './project-copy.js';
import { runProgram } from './run-program.js';

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

/** A small tree without a violation. */
const tree: Record<string, string> = {
  'src/cli/main.ts': "import '../daemon/daemon.js';\nimport 'node:fs';",
  'src/daemon/daemon.ts': "import '../mount/mount.js';\nimport '../harnesses/registry.js';",
  'src/mount/mount.ts': "import '../service/service.js';\nimport '../native/fuse.js';",
  'src/service/service.ts':
    "import '../routing/route.js';\nimport '../queue/queue.js';\nimport '../harnesses/jsonl.js';",
  'src/harnesses/registry.ts': "import './echo/echo.js';\nimport './pi/pi.js';",
  'src/harnesses/jsonl.ts': 'export {};',
  'src/harnesses/echo/echo.ts': "import '../jsonl.js';",
  'src/harnesses/pi/pi.ts': "import './parser.js';",
  'src/harnesses/pi/parser.ts': 'export {};',
  'src/routing/route.ts': "import '../lifecycle/lifecycle.js';",
  'src/lifecycle/lifecycle.ts':
    "import '../durable/journal.js';\nimport '../native/process.js';\nimport { supervisorExecutable } from '../native/addon.js';",
  'src/sessions/sessions.ts': "import '../durable/journal.js';",
  'src/queue/queue.ts': 'export {};',
  'src/audit/audit.ts': "import type { X } from '../contract/names.js';",
  'src/durable/journal.ts': "import '../contract/names.js';",
  'src/contract/names.ts': 'export type X = 1;',
  'src/native/addon.ts': "import '../contract/names.js';",
  'src/native/fuse.ts': "import './addon.js';",
  'src/native/process.ts': "import './addon.js';",
};

/** Folder of the importing file, what it imports, the rules that this must break. */
const mutations: readonly (readonly [string, string, readonly string[]])[] = [
  ['src/daemon', "import '../cli/main.js';", ['layer-daemon']],
  ['src/service', "import '../mount/mount.js';", ['layer-service']],
  ['src/harnesses', "import '../service/service.js';", ['layer-harnesses']],
  ['src/routing', "import '../harnesses/jsonl.js';", ['layer-routing']],
  ['src/durable', "import '../queue/queue.js';", ['layer-durable']],
  ['src/contract', "import '../durable/journal.js';", ['layer-contract']],
  ['src/contract', "import '../native/fuse.js';", ['contract-without-io', 'layer-contract']],
  ['src/contract', "import 'node:fs';", ['contract-without-io']],
  ['src/contract', "import 'net';", ['contract-without-io']],
  ['src/contract', "import 'node:fs/promises';", ['contract-without-io']],
  ['src/native', "import '../durable/journal.js';", ['layer-native']],
  ['src/sessions', "import '../queue/queue.js';", ['layer-sessions']],
  ['src/queue', "import '../audit/audit.js';", ['layer-queue']],
  ['src/audit', "import '../sessions/sessions.js';", ['layer-audit']],
  ['src/lifecycle', "import '../sessions/sessions.js';", ['layer-lifecycle']],
  ['src/harnesses/pi', "import '../echo/echo.js';", ['harness-cross-import']],
  ['src/harnesses', "import './echo/echo.js';", ['harness-registry-only']],
  ['src/service', "import '../harnesses/pi/pi.js';", ['harness-registry-only']],
  ['src/cli', "import '../harnesses/pi/parser.js';", ['harness-registry-only']],
  ['src/mount', "import '../native/addon.js';", ['addon-behind-its-face']],
  ['src/cli', "import '../extra/extra.js';", ['layer-cli']],
  ['src/extra', "import '../contract/names.js';", ['known-folder']],
  ['src/cli', "import './missing.js';", ['no-unresolvable']],
  ['src/cli', "import 'vitest';", ['no-undeclared-package']],
  ['src/cli', "import './self.js';", ['no-cycles']],
  ['src/queue', "import type { X } from '../mount/mount.js';", ['layer-queue']],
  ['src/queue', "export const later = () => import('../mount/mount.js');", ['layer-queue']],
  ['src/queue', "export * from '../mount/mount.js';", ['layer-queue']],
  ['src/queue', "const x = require('../mount/mount.js');", ['layer-queue']],
];

const mutant = (index: number): string => `${mutations[index]?.[0]}/mutant-${index}.ts`;

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'layers-'));
  for (const name of ['.dependency-cruiser.cjs', 'tsconfig.json', 'package.json']) {
    cpSync(join(project, name), join(folder, name));
  }
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  for (const [path, content] of Object.entries(tree)) put(path, content);
});

afterAll(() => rmSync(folder, { recursive: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), `${content}\n`);
}

async function violations(): Promise<Violation[]> {
  const program = join(project, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [program, '--config', '.dependency-cruiser.cjs', '--output-type', 'json', 'src'];
  const { stdout, stderr } = await runProgram(process.execPath, args, { cwd: folder });
  expect(stderr).toBe('');
  return JSON.parse(stdout).summary.violations;
}

describe('the check of the layers', () => {
  it('SU-20 passes a tree that keeps them', async () => {
    expect(await violations()).toEqual([]);
  });

  describe('mutants', () => {
    let found: Violation[] = [];

    beforeAll(async () => {
      put('src/extra/extra.ts', 'export {};');
      for (const [index, [directory, statement]] of mutations.entries()) {
        put(mutant(index), statement);
        if (statement.includes('./self.js')) put(`${directory}/self.ts`, `import './mutant-${index}.js';`);
      }
      found = await violations();
    });

    it.each(mutations.map(([from, statement, rules], index) => ({ from, statement, rules, index })))(
      'SU-20 refuses in $from: $statement',
      ({ index, rules }) => {
        const broken = found.filter(({ from }) => from === mutant(index)).map(({ rule }) => rule.name);
        expect([...new Set(broken)].sort()).toEqual(rules);
      },
    );
  });
});
