import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ProjectCopy, project } from './project-copy.js';
import { type ProgramOutcome, runProgram } from './run-program.js';

const NOBODY = 65_534;

/** In this order set-up names the packages of an empty machine. */
const ALL_PACKAGES = 'cmake g++ make pkg-config fuse3 libfuse3-dev';

function setUp(root: string, env: NodeJS.ProcessEnv = process.env): Promise<ProgramOutcome> {
  return runProgram(process.execPath, [join(root, 'scripts', 'setup.mjs')], { cwd: root, env });
}

/** Set-up as a user who is not root, on a machine that has only the programs of `folder`. */
function setUpAsUser(root: string, folder: string): Promise<ProgramOutcome> {
  const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const env = { PATH: folder, HOME: folder };
  return runProgram(process.execPath, [join(root, 'scripts', 'setup.mjs')], { cwd: root, env, ...identity });
}

/** A folder of programs: shell scripts by name. */
function programs(scripts: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'bin-'));
  chmodSync(folder, 0o777);
  for (const name of ['env', 'sh', 'cat', 'flock']) symlinkSync(join('/usr/bin', name), join(folder, name));
  for (const [name, body] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  }
  return folder;
}

function readableCopy(): ProjectCopy {
  const copy = new ProjectCopy();
  chmodSync(copy.root, 0o755);
  return copy;
}

function times(folder: string): Record<string, number> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return Object.fromEntries(files.map((file) => [file, statSync(join(folder, file)).mtimeMs]));
}

describe('the host', () => {
  it.each([
    [{ version: 'v20.18.3', platform: 'linux', arch: 'x64' }, /Node\.js >= 20\.19/],
    [{ version: 'v18.20.0', platform: 'linux', arch: 'x64' }, /Node\.js >= 20\.19/],
    [{ version: 'v22.0.0', platform: 'darwin', arch: 'arm64' }, /Linux on x64 or arm64/],
    [{ version: 'v22.0.0', platform: 'linux', arch: 'ia32' }, /Linux on x64 or arm64/],
  ])('SU-01 refuses %o', async (host, message) => {
    const script = `
      import { checkPlatform } from ${JSON.stringify(join(project, 'scripts/setup/platform.mjs'))};
      checkPlatform(${JSON.stringify(host)});`;
    const outcome = await runProgram(process.execPath, ['--input-type=module', '-e', script]);
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(message);
  });

  it.each(['v20.19.0', 'v22.1.0', 'v26.0.0'])('SU-01 takes Node.js %s', async (version) => {
    const script = `
      import { checkPlatform } from ${JSON.stringify(join(project, 'scripts/setup/platform.mjs'))};
      checkPlatform({ version: '${version}', platform: 'linux', arch: 'arm64' });`;
    expect(await runProgram(process.execPath, ['--input-type=module', '-e', script])).toMatchObject({ code: 0 });
  });
});

describe('system packages', () => {
  it('SU-02 names the one command and fails when nobody may install', async () => {
    using copy = readableCopy();
    const folder = programs({ 'apt-get': 'exit 97' });
    const outcome = await setUpAsUser(copy.root, folder);
    expect(outcome.code).toBe(1);
    expect(outcome.stderr.match(/sudo apt-get install -y .*/g)).toEqual([`sudo apt-get install -y ${ALL_PACKAGES}`]);
  });

  it('SU-02 names only what is missing', async () => {
    using copy = readableCopy();
    const there = { cmake: 'exit 0', 'g++': 'exit 0', make: 'exit 0', 'pkg-config': 'exit 1' };
    const outcome = await setUpAsUser(copy.root, programs({ 'apt-get': 'exit 97', sudo: 'exit 1', ...there }));
    expect(outcome.stderr).toContain('sudo apt-get install -y fuse3 libfuse3-dev\n');
    expect(outcome.code).toBe(1);
  });

  it('SU-03 installs what is missing through password-less sudo, and again after an update when that fails', async () => {
    using copy = readableCopy();
    chmodSync(join(copy.root, 'build'), 0o777);
    const log = join(mkdtempSync(join(tmpdir(), 'apt-')), 'calls');
    writeFileSync(log, '', { mode: 0o666 });
    chmodSync(join(log, '..'), 0o755);
    chmodSync(log, 0o666);
    const folder = programs({
      sudo: '[ "$1" = -n ] || exit 1; shift; exec "$@"',
      true: 'exit 0',
      // The first install fails, as on a machine without package lists; the second brings the programs.
      'apt-get': `
        echo "$DEBIAN_FRONTEND $*" >> ${log}
        case "$*" in
          *update*) : > "$HOME/updated" ;;
          *) [ -e "$HOME/updated" ] || exit 100
             for name in cmake g++ make pkg-config fusermount3; do
               printf '#!/bin/sh\\nexit 0\\n' > "$HOME/$name"; /usr/bin/chmod 755 "$HOME/$name"
             done ;;
        esac`,
    });
    const outcome = await setUpAsUser(copy.root, folder);
    const install = `noninteractive -o DPkg::Lock::Timeout=300 install -y --no-install-recommends ${ALL_PACKAGES}`;
    expect(readFileSync(log, 'utf8').trim().split('\n')).toEqual([
      install,
      'noninteractive -o DPkg::Lock::Timeout=300 update',
      install,
    ]);
    expect(outcome).toMatchObject({ code: 0, stdout: '' });
  });
});

describe('results', () => {
  it('SU-04 a current set-up prints nothing and changes nothing', async () => {
    using copy = new ProjectCopy();
    const before = times(copy.root);
    expect(await setUp(copy.root)).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(times(copy.root)).toEqual(before);
  });

  it('SU-05 new times redo nothing; a changed source redoes only its own build', async () => {
    using copy = new ProjectCopy();
    for (const folder of ['src', 'native']) {
      for (const file of readdirSync(join(copy.root, folder), { recursive: true, encoding: 'utf8' })) {
        utimesSync(join(copy.root, folder, file), new Date(), new Date());
      }
    }
    expect(await setUp(copy.root)).toEqual({ code: 0, stdout: '', stderr: '' });

    const addon = statSync(join(copy.root, 'build/Release/bridle.node')).mtimeMs;
    appendFileSync(join(copy.root, 'src/contract/names.ts'), 'export const added = 1;\n');
    const outcome = await setUp(copy.root);
    expect(outcome.stderr).toContain('TypeScript build: done');
    expect(outcome.stderr).not.toContain('native build');
    expect(readFileSync(join(copy.root, 'dist/contract/names.js'), 'utf8')).toContain('added');
    expect(statSync(join(copy.root, 'build/Release/bridle.node')).mtimeMs).toBe(addon);
    expect(await setUp(copy.root)).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('SU-06 of two set-ups at once one builds and both succeed', async () => {
    using copy = new ProjectCopy();
    rmSync(join(copy.root, 'dist'), { recursive: true });
    const outcomes = await Promise.all([setUp(copy.root), setUp(copy.root), setUp(copy.root)]);
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(outcomes.filter(({ stderr }) => stderr.includes('TypeScript build: done'))).toHaveLength(1);
    expect(existsSync(join(copy.root, 'dist/cli/main.js'))).toBe(true);
  });

  it('SU-08 a deleted source leaves nothing in dist', async () => {
    using copy = new ProjectCopy();
    const added = join(copy.root, 'src/contract/added.ts');
    writeFileSync(added, 'export const added = 1;\n');
    await setUp(copy.root);
    expect(existsSync(join(copy.root, 'dist/contract/added.js'))).toBe(true);
    rmSync(added);
    await setUp(copy.root);
    expect(existsSync(join(copy.root, 'dist/contract/added.js'))).toBe(false);
    expect(existsSync(join(copy.root, 'dist/contract/names.js'))).toBe(true);
  });

  it('SU-07 the lockfile names no address, and npm is told to run no install script', () => {
    const lock = readFileSync(join(project, 'package-lock.json'), 'utf8');
    expect(lock).not.toContain('"resolved"');
    expect(lock).not.toContain('://registry');
    const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ gypfile: false, binary: { napi_versions: [9] } });
    expect(readFileSync(join(project, 'scripts/setup/node-modules.mjs'), 'utf8')).toContain("'--ignore-scripts'");
  });
});
