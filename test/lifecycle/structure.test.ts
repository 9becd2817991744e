import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { offencesIn, offencesOfTree } from '../../scripts/process-rule.mjs';
import { ProjectCopy, project } from '../setup/project-copy.js';
import { runProgram } from '../setup/run-program.js';

const FILE = 'src/daemon/daemon.ts';
const TEXT = readFileSync(join(project, FILE), 'utf8');

/** The file with a line more, after its imports. */
function mutated(mutant: string): { text: string; line: number } {
  const lines = TEXT.split('\n');
  const line = lines.findLastIndex((text) => / from '.*';$/.test(text)) + 2;
  lines.splice(line - 1, 0, ...mutant.split('\n'));
  return { text: lines.join('\n'), line };
}

describe('process primitives', () => {
  it('LC-62 are used by src/lifecycle alone', () => {
    expect(offencesOfTree()).toEqual([]);
  });

  it.each([
    [`import { spawn } from 'node:child_process';`, 'node:child_process'],
    [`import * as child from "child_process";`, 'child_process'],
    [`import type { ChildProcess } from 'node:child_process';`, 'node:child_process'],
    [`import 'child_process';`, 'child_process'],
    [`import child = require('node:child_process');`, 'node:child_process'],
    [`export { spawn } from 'node:child_process';`, 'node:child_process'],
    [`export * from 'child_process';`, 'child_process'],
    [`const { fork } = await import('node:child_process');`, 'node:child_process'],
    ['const child = await import(`node:child_process`);', 'node:child_process'],
    [`const child = await import('node:child' + '_process');`, 'node:child_process'],
    [`const child = await import('node:' + name);`, 'a module of a computed name'],
    [`const { exec } = require('child_process');`, 'child_process'],
    [`const child = createRequire(import.meta.url)('child_process');`, 'child_process'],
    ['const child = createRequire(import.meta.url)(name);', 'createRequire'],
    ['const child = require(name);', 'a module of a computed name'],
    [`import { createRequire } from 'node:module';`, 'createRequire'],
    [`import Module from 'module';`, 'module'],
    [`import { runInThisContext } from 'node:vm';`, 'node:vm'],
    [`const need = createRequire(import.meta.url), child = need('node:child_process');`, 'node:child_process'],
    [`const name = 'node:child_process';`, 'node:child_process'],
    [`import cluster from 'node:cluster';`, 'node:cluster'],
    [`import cluster from 'cluster';`, 'cluster'],
    [`import cluster = require('cluster');`, 'cluster'],
    [`const cluster = await import('cluster');`, 'cluster'],
    [`const cluster = createRequire(import.meta.url)('cluster');`, 'createRequire'],
    [`process.getBuiltinModule('fs');`, 'process.getBuiltinModule'],
    [`import { getBuiltinModule } from 'node:process';`, 'process.getBuiltinModule'],
    [`process.kill(1, 'SIGTERM');`, 'process.kill'],
    ['process\n  .kill(1);', 'process.kill'],
    ['process?.kill(1);', 'process.kill'],
    ['(process as NodeJS.Process)!.kill(1);', 'process.kill'],
    [`process['kill'](1);`, 'process.kill'],
    ['process[`kill`](1);', 'process.kill'],
    [`process['ki' + 'll'](1);`, 'process.kill'],
    ['process[name](1);', 'a computed member of process'],
    ['const end = process.abort;', 'process.abort'],
    [`process.binding('spawn_sync');`, 'process.binding'],
    ['process.dlopen(module, file);', 'process.dlopen'],
    [`process.execve('/bin/true', [], {});`, 'process.execve'],
    [`process.on('SIGHUP', later).kill(1);`, 'process.kill'],
    [`const p = process.once('SIGHUP', later).on('SIGINT', later); p.kill(1);`, 'process.kill'],
    ['globalThis.process.kill(1);', 'process.kill'],
    [`globalThis['process']['kill'](1);`, 'process.kill'],
    ['global.process.kill(1);', 'process.kill'],
    ['globalThis.globalThis.process.kill(1);', 'process.kill'],
    ['globalThis[name].kill(1);', 'a computed member of the global object'],
    ['const { kill } = process;', 'process.kill'],
    ['const { kill: end } = process;', 'process.kill'],
    [`const { ['kill']: end } = process;`, 'process.kill'],
    ['const { env, ...rest } = process;', 'a computed member of process'],
    ['const { process: { kill } } = globalThis;', 'process.kill'],
    ['const { process: own } = globalThis; own.kill(1);', 'process.kill'],
    ['const { globalThis: { process: own } } = globalThis; own.kill(1);', 'process.kill'],
    ['const { env, ...rest } = globalThis;', 'a computed member of the global object'],
    ['let kill; ({ kill } = process);', 'process.kill'],
    ['function end({ kill } = process) {}', 'process.kill'],
    ['const p = process; p.kill(1);', 'process.kill'],
    ['let p; p = process; p.kill(1);', 'process.kill'],
    ['const p = process, q = p; q.kill(1);', 'process.kill'],
    ['const g = globalThis; g.process.kill(1);', 'process.kill'],
    ['function end() { own.kill(1); } const own = process;', 'process.kill'],
    [`import { kill } from 'node:process';`, 'process.kill'],
    [`import { kill as end } from 'process';`, 'process.kill'],
    [`import own from 'node:process'; own.kill(1);`, 'process.kill'],
    [`import { default as own } from 'node:process'; own.kill(1);`, 'process.kill'],
    [`import * as own from 'node:process'; own.default.kill(1);`, 'process.kill'],
    [`export { kill } from 'node:process';`, 'process.kill'],
    [`export * from 'node:process';`, 'all of node:process'],
    [`(await import('node:process')).kill(1);`, 'process.kill'],
    [`const { kill } = await import('node:process');`, 'process.kill'],
    [`const { default: p } = await import('node:process'); p.kill(1);`, 'process.kill'],
    [`const p = (await import('node:process')).default; p.kill(1);`, 'process.kill'],
    [`import('node:process').then((p) => p.kill(1));`, 'process.then'],
    [`import own = require('node:process'); own.kill(1);`, 'process.kill'],
    [`const own = require('process'); own.kill(1);`, 'process.kill'],
    [`import * as own from 'node:process'; end(own.default);`, 'process as a value'],
    ['export const p = process;', 'process as a value'],
    ['const p = process; export { p };', 'process as a value'],
    ['export const { process: p } = globalThis;', 'process as a value'],
    [`export import own = require('node:process');`, 'process as a value'],
    ['function end(own: NodeJS.Process) { own.kill(1); }', 'NodeJS.Process'],
    ['let own: NodeJS.Process | undefined;', 'NodeJS.Process'],
    ['interface Own extends NodeJS.Process {}', 'NodeJS.Process'],
    ['function end(own: typeof process) { own.kill(1); }', 'typeof process'],
    ['function end(own: typeof globalThis.process) { own.kill(1); }', 'typeof process'],
    [`Reflect.get(process, 'kill');`, 'process as a value'],
    ['const all = { process };', 'process as a value'],
    ['const all = [globalThis.process];', 'process as a value'],
    ['const all = Object.values(globalThis);', 'the global object as a value'],
    ['declare const process: NodeJS.Process; process.kill(1);', 'process.kill'],
    [`import { signalProcess } from '../native/process.js';`, 'signalProcess of ../native/process.js'],
    [`import { spawnSupervisor as start } from '../native/process.js';`, 'spawnSupervisor of ../native/process.js'],
    [`import { holdInJob } from '../native/job.js';`, 'holdInJob of ../native/job.js'],
    [`import { hasJobs, holdInJob as hold } from '../native/job.js';`, 'holdInJob of ../native/job.js'],
    [`import native = require('../native/job.js');`, 'all of ../native/job.js'],
    [`import * as native from '../native/process.js';`, 'all of ../native/process.js'],
    [`export * from '../native/process.js';`, 'all of ../native/process.js'],
    [`const native = await import('../native/process.js');`, 'all of ../native/process.js'],
    ['nativeExports<Any>().signalProcess(identity, 9);', 'signalProcess'],
    [`nativeExports<Any>()['spawnSupervisor'](program);`, 'spawnSupervisor'],
    [`nativeExports<Any>()['spawn' + 'Supervisor'](program);`, 'spawnSupervisor'],
    ['const { signalProcess: send } = nativeExports<Any>();', 'signalProcess'],
    ['nativeExports<Any>().holdInJob(launch, ended);', 'holdInJob'],
    ['nativeExports<Any>()[name](program);', 'a computed member of the addon'],
    ['const addon = nativeExports<Any>(); addon[name](program);', 'a computed member of the addon'],
    ['const { ...calls } = nativeExports<Any>();', 'a computed member of the addon'],
    ['const calls = Object.values(nativeExports<Any>());', 'the addon as a value'],
    [`const file = join(directory, 'bridle.node');`, 'bridle.node'],
    [`import addon from '../../build/Release/bridle.node';`, '../../build/Release/bridle.node'],
  ])('LC-62 the rule names %s', (mutant, what) => {
    const { text, line } = mutated(mutant);
    const found = offencesIn(FILE, text);
    expect(found.map((offence) => offence.what)).toContain(what);
    for (const offence of found) expect(offence).toMatchObject({ file: FILE, line });
  });

  it.each([
    'process.exit(1);',
    `process.env['kill'] = process.env[name];`,
    `process.once('SIGTERM', () => undefined).removeListener('SIGTERM', end);`,
    'const { env, pid } = process;',
    'const p = process; p.exit(p.pid);',
    `import { env } from 'node:process';`,
    'globalThis.setTimeout(later, 1);',
    '// child_process, process.kill and cluster are not used here',
    `const words = ['kill', 'cluster', 'the process.kill of Node'];`,
    `import { kill } from './kill.js';`,
    `const [first] = words('module', 'vm', 'cluster');`,
    `process.once('SIGINT', end).once('SIGTERM', end);`,
    'const env: NodeJS.ProcessEnv = {};',
    `import { hasJobs } from '../native/job.js';`,
    `const { getuid } = await import('node:process');`,
    'function ended(process: ContainedProcess) { process.kill(); return [process]; }',
    'class Run { readonly #process = 1; get process() { return this.#process; } }',
    `import { probeContainment } from '../native/process.js';`,
    `import type { ProcessHandle } from '../native/process.js';`,
    `import { type SignalProof, probeContainment } from '../native/process.js';`,
    `const { identify } = await import('../native/identity.js');`,
  ])('LC-62 the rule passes %s', (line) => {
    expect(offencesIn(FILE, mutated(line).text)).toEqual([]);
  });

  it('LC-62 bites in the place that may use them', () => {
    const file = 'src/lifecycle/linux/supervisor.ts';
    const found = offencesIn(file, readFileSync(join(project, file), 'utf8'));
    expect(found.map(({ what }) => what)).toContain('spawnSupervisor of ../../native/process.js');
  });

  it('LC-62 fails the checks of a tree with an offence', { timeout: 300_000 }, async () => {
    using copy = new ProjectCopy();
    const evidence = { ...process.env, BRIDLE_EVIDENCE_DIR: join(copy.root, 'evidence') };
    const check = () =>
      runProgram(process.execPath, [join(copy.root, 'scripts/check.mjs'), 'processes'], { env: evidence });
    expect((await check()).code).toBe(0);
    const { text, line } = mutated(`process['kill'](1);`);
    writeFileSync(join(copy.root, FILE), text);
    const { code, stderr } = await check();
    expect(code).toBe(1);
    expect(stderr).toContain(`${FILE}:${line}: process.kill`);
  });
});
