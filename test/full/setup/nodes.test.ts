import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { project } from '../../setup/project-copy.js';
import { runProgram } from '../../setup/run-program.js';

// Installed by `npm run test:full`, see scripts/full/nodes.mjs.
const program = (version: string): string =>
  join(project, `build/full/node-${version}/node_modules/node-linux-${process.arch}/bin/node`);

it.each(['22', '24', '26'])(
  'SU-15 the demonstration runs on Node.js %s with the binary built once',
  async (version) => {
    const said = await runProgram(program(version), ['--version']);
    expect(said.stdout).toMatch(new RegExp(`^v${version}\\.`));
    const home = mkdtempSync(join(tmpdir(), 'home-'));
    const runtime = join(home, 'run');
    mkdirSync(runtime, { mode: 0o700 });
    const env: NodeJS.ProcessEnv = { ...process.env, HOME: home, XDG_RUNTIME_DIR: runtime };
    for (const name of ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'BRIDLE_MOUNT', 'BRIDLE_CONFIG']) delete env[name];
    const outcome = await runProgram(program(version), [join(project, 'dist/cli/main.js'), 'demo'], { env });
    expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
    expect(outcome.stdout).toContain('.resp.json');
  },
);
