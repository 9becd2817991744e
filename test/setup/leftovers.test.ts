import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { project } from './project-copy.js';
import { type ProgramOutcome, runProgram } from './run-program.js';

/** Runs a test file of its own, in a runner of its own that has the global set-up of this project. */
function runTest(body: string): Promise<ProgramOutcome> {
  const folder = mkdtempSync(join(tmpdir(), 'leftovers-'));
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(
    join(folder, 'vitest.config.mjs'),
    `export default { test: { globalSetup: [${JSON.stringify(join(project, 'test/global-setup.ts'))}] } };`,
  );
  writeFileSync(
    join(folder, 'one.test.mjs'),
    `import { execFileSync, spawn } from 'node:child_process';
     import { mkdtempSync, writeFileSync } from 'node:fs';
     import { tmpdir } from 'node:os';
     import { join } from 'node:path';
     import { it } from 'vitest';
     it('passes', () => { ${body} });`,
  );
  return runProgram(process.execPath, [join(project, 'node_modules/vitest/vitest.mjs'), 'run'], { cwd: folder });
}

it('SU-37 passes a run that leaves nothing', async () => {
  const outcome = await runTest("writeFileSync(join(mkdtempSync(join(tmpdir(), 'x-')), 'file'), '')");
  expect(outcome, outcome.stdout + outcome.stderr).toMatchObject({ code: 0 });
});

it('SU-37 fails a run that leaves a process, and names it', async () => {
  const pidFile = join(mkdtempSync(join(tmpdir(), 'pid-')), 'pid');
  const outcome = await runTest(`
    const child = spawn('sleep', ['598'], { detached: true, stdio: 'ignore' });
    child.unref();
    writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));`);
  const pid = Number(readFileSync(pidFile, 'utf8'));
  process.kill(pid, 'SIGKILL');
  expect(outcome.code).not.toBe(0);
  expect(outcome.stdout + outcome.stderr).toContain(`process ${pid}: sleep 598`);
});

it('SU-37 fails a run that leaves a mount, names it and removes it', async () => {
  if (process.getuid?.() !== 0) {
    // Only root may mount without a program of ours; for a user the same code sees the mounts of fusermount3.
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(tmpdir());
    return;
  }
  const outcome = await runTest(`
    const folder = mkdtempSync(join(tmpdir(), 'mount-'));
    execFileSync('mount', ['-t', 'tmpfs', 'left', folder]);`);
  expect(outcome.code).not.toBe(0);
  const mount = /mount (\/tmp\/bt-\S+)/.exec(outcome.stdout + outcome.stderr)?.[1];
  expect(mount).toBeDefined();
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(mount);
});
