import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ProjectCopy, project } from './project-copy.js';
import { type ProgramOutcome, runProgram } from './run-program.js';

const built = join(project, 'build/Release');
const BUILD_DEADLINE_MS = 600_000;

/** Runs a build that cannot reach any network: in an empty network namespace, or, without root, with dead proxies. */
function offline(program: string, args: readonly string[], cwd: string): Promise<ProgramOutcome> {
  const dead = 'http://127.0.0.1:9';
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    http_proxy: dead,
    https_proxy: dead,
    CMAKE_BUILD_PARALLEL_LEVEL: '2',
  };
  // What a machine's npm configuration may hold must not be what makes the build work.
  for (const name of Object.keys(env)) if (/^npm_config_nodedir$/i.test(name)) delete env[name];
  if (process.getuid?.() !== 0) return runProgram(program, args, { cwd, env });
  return runProgram('unshare', ['--net', '--', program, ...args], { cwd, env });
}

async function exportsOf(addon: string): Promise<string[]> {
  const script = `console.log(JSON.stringify(Object.keys(require(${JSON.stringify(addon)})).sort()))`;
  const outcome = await runProgram(process.execPath, ['-e', script]);
  expect(outcome.stderr).toBe('');
  return JSON.parse(outcome.stdout);
}

/** A folder that node-gyp takes for the headers of Node.js: Node-API headers from npm and the two files it reads. */
function makeNodeDirectory(): string {
  const require = createRequire(join(project, 'package.json'));
  const headers: string = require('node-api-headers').include_dir;
  const root = mkdtempSync(join(tmpdir(), 'nodedir-'));
  const include = join(root, 'include/node');
  mkdirSync(include, { recursive: true });
  for (const file of readdirSync(headers)) copyFileSync(join(headers, file), join(include, file));
  writeFileSync(join(include, 'config.gypi'), JSON.stringify(process.config));
  const release = { cflags: ['-O0'], ldflags: [] };
  const defaults = {
    default_configuration: 'Release',
    configurations: { Release: release, Debug: release },
    cflags: ['-fPIC', '-pthread'],
  };
  writeFileSync(join(include, 'common.gypi'), JSON.stringify({ target_defaults: defaults }));
  return root;
}

function cmakeSources(list: string): string[] {
  const text = readFileSync(join(project, 'CMakeLists.txt'), 'utf8');
  const body = new RegExp(`set\\(${list}\\n([^)]*)\\)`).exec(text)?.[1] ?? '';
  return body.trim().split(/\s+/).sort();
}

describe('source lists', () => {
  it('SU-10 CMakeLists.txt and binding.gyp name the same sources', () => {
    const gyp = JSON.parse(readFileSync(join(project, 'binding.gyp'), 'utf8'));
    expect(cmakeSources('BRIDLE_ADDON_SOURCES')).toEqual([...gyp.targets[0].sources].sort());
  });

  it('SU-10 every source stands in a list', () => {
    const lists = ['BRIDLE_ADDON_SOURCES', 'BRIDLE_SUPERVISOR_SOURCES', 'BRIDLE_WINDOWS_SOURCES'];
    const listed = new Set(lists.flatMap(cmakeSources));
    const sources = readdirSync(join(project, 'native'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.cc'))
      .map((file) => `native/${file}`);
    expect(sources.sort()).toEqual([...listed].sort());
  });
});

describe('builds', () => {
  it('SU-11 cmake-js configures without a network', async () => {
    const cmakeJs = join(project, 'node_modules/cmake-js/bin/cmake-js');
    const out = mkdtempSync(join(tmpdir(), 'cmake-js-'));
    const outcome = await offline(process.execPath, [cmakeJs, 'configure', '--out', out], project);
    expect(outcome, outcome.stderr).toMatchObject({ code: 0 });
    expect(readFileSync(join(out, 'CMakeCache.txt'), 'utf8')).toContain('node-api-headers');
  });

  it('SU-11 plain cmake builds it without a network and without a warning', {
    timeout: BUILD_DEADLINE_MS,
  }, async () => {
    const out = mkdtempSync(join(tmpdir(), 'cmake-'));
    const configure = await offline('cmake', ['-S', project, '-B', out, '-DBRIDLE_WERROR=ON'], project);
    expect(configure, configure.stderr).toMatchObject({ code: 0 });
    const build = await offline('cmake', ['--build', out], project);
    expect(build, build.stdout + build.stderr).toMatchObject({ code: 0 });
    expect(build.stdout + build.stderr).not.toContain('warning:');
    expect(await exportsOf(join(out, 'Release/bridle.node'))).toEqual(await exportsOf(join(built, 'bridle.node')));
  });

  it('SU-11 node-gyp builds it without a network', { timeout: BUILD_DEADLINE_MS }, async () => {
    using copy = new ProjectCopy();
    const gyp = join(project, 'node_modules/node-gyp/bin/node-gyp.js');
    const args = [gyp, 'rebuild', `--nodedir=${makeNodeDirectory()}`, '--jobs=2'];
    const outcome = await offline(process.execPath, args, copy.root);
    expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
    const functions = await exportsOf(join(copy.root, 'build/Release/bridle.node'));
    expect(functions).toEqual(await exportsOf(join(built, 'bridle.node')));
    expect(functions).toEqual(expect.arrayContaining(['listFuseMounts', 'openConnection', 'serve', 'spawnSupervisor']));
  });
});

describe('results', () => {
  const addon = join(built, 'bridle.node');
  const supervisor = join(built, 'bridle-supervisor');

  it('SU-12 the addon imports Node-API only', async () => {
    const { stdout } = await runProgram('nm', ['--dynamic', '--undefined-only', '--demangle', addon]);
    expect(stdout).toContain('napi_create_function');
    expect(stdout).not.toMatch(/\b(v8|node)::|\buv_/);
  });

  it('SU-13 the addon loads in worker threads and in the main thread', async () => {
    const use = `require(${JSON.stringify(addon)}).listFuseMounts();`;
    const script = `
      const { Worker } = require('node:worker_threads');
      const { once } = require('node:events');
      (async () => {
        for (let round = 0; round < 3; round += 1) {
          const workers = [1, 2].map(() => new Worker(${JSON.stringify(use)}, { eval: true }));
          if (round === 1) ${use}
          for (const [code] of await Promise.all(workers.map((worker) => once(worker, 'exit')))) {
            if (code !== 0) process.exitCode = 9;
          }
        }
        ${use}
        console.log('used');
      })();`;
    const outcome = await runProgram(process.execPath, ['-e', script]);
    expect(outcome).toEqual({ code: 0, stdout: 'used\n', stderr: '' });
  });

  it.each([addon, supervisor])('SU-14 %s is hardened', async (file) => {
    const { stdout: dynamic } = await runProgram('readelf', ['--dynamic', '--wide', file]);
    const { stdout: segments } = await runProgram('readelf', ['--segments', '--wide', file]);
    expect(dynamic).toMatch(/BIND_NOW|FLAGS_1.*NOW/);
    expect(segments).toContain('GNU_RELRO');
    expect(/GNU_STACK.*/.exec(segments)?.[0]).not.toContain('RWE');
    const { stdout: header } = await runProgram('readelf', ['--file-header', file]);
    expect(header).toMatch(/Type:\s+DYN/);
    // The supervisor has its libraries inside it, so what it uses of them is no import.
    const isStatic = !/INTERP|NEEDED/.test(segments + dynamic);
    expect(isStatic).toBe(file === supervisor);
    const { stdout: symbols } = await runProgram('nm', isStatic ? [file] : ['--dynamic', '--undefined-only', file]);
    expect(symbols).toContain('__stack_chk_fail');
  });

  it('SU-14 the addon exports nothing but its entry points', async () => {
    const { stdout } = await runProgram('nm', ['--dynamic', '--defined-only', '--format=just-symbols', addon]);
    const entryPoints = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
    expect(stdout.trim().split('\n').sort()).toEqual(entryPoints);
  });
});
