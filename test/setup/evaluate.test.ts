import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ProjectCopy } from './project-copy.js';
import { runProgram } from './run-program.js';

type Status = 'passed' | 'failed' | 'pending' | 'todo' | 'skipped';

// A copy: nobody edits it while the tests run, and it has a commit of its own.
const copy = new ProjectCopy();
const project = copy.root;
let folder = '';
let commit = '';

beforeAll(async () => {
  const git = (...args: string[]) =>
    runProgram('git', ['-C', project, '-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args]);
  await git('init', '--quiet');
  await git('add', 'package.json', 'src');
  await git('commit', '--quiet', '--message=test');
  writeFileSync(join(project, '.git/info/exclude'), '*\n');
  commit = (await git('rev-parse', 'HEAD')).stdout.trim();
});

afterAll(() => copy[Symbol.dispose]());

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'evaluate-'));
  put('spec/request.md', '- **ZQ-01** Something holds.\n- **ZQ-02** Something else holds,\n  on two lines.\n');
  results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed' });
});

afterEach(() => rmSync(folder, { recursive: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

/** Writes results as vitest's JSON reporter does. */
function results(tests: Record<string, Status>, set = '', suiteStatus?: string): void {
  const outcomes = Object.entries(tests).map(([fullName, status]) => ({
    fullName,
    title: fullName,
    status,
    duration: 1,
  }));
  const failed = outcomes.some(({ status }) => status === 'failed');
  const suite = { name: join(project, 'test/x.test.ts'), status: suiteStatus ?? (failed ? 'failed' : 'passed') };
  const report = { success: !failed, testResults: [{ ...suite, assertionResults: outcomes }] };
  put(`results/vitest${set}.json`, JSON.stringify(report));
}

async function treeOf(): Promise<string> {
  const script = `
    import { treeFingerprint } from ${JSON.stringify(join(project, 'scripts/evaluate/environment.mjs'))};
    process.stdout.write(treeFingerprint());`;
  return (await runProgram(process.execPath, ['--input-type=module', '-e', script], { cwd: project })).stdout;
}

async function evaluate(
  run: { exitCode?: number; tree?: string } = {},
  set = '',
): Promise<{ code: number | null; text: string }> {
  put(`results/run${set}.json`, JSON.stringify({ exitCode: run.exitCode ?? 0, tree: run.tree ?? (await treeOf()) }));
  return justEvaluate();
}

async function justEvaluate(): Promise<{ code: number | null; text: string }> {
  const places = [
    ...['--spec', join(folder, 'spec'), '--results', join(folder, 'results')],
    ...['--tests', join(folder, 'test'), '--out', join(folder, 'out')],
  ];
  const outcome = await runProgram(process.execPath, [join(project, 'scripts/evaluate.mjs'), ...places]);
  return { code: outcome.code, text: outcome.stderr };
}

describe('evaluation', () => {
  it('SU-30 SU-36 is green when each requirement has a passed test, and writes the evidence', async () => {
    expect(await evaluate()).toMatchObject({
      code: 0,
      text: expect.stringContaining('green: 2 requirements, 2 proven'),
    });
    const evidence = JSON.parse(readFileSync(join(folder, 'out/evidence.json'), 'utf8'));
    expect(evidence).toMatchObject({
      green: true,
      environment: { commit, dirty: false, node: process.version, kernel: expect.any(String) },
      requirements: [
        { id: 'ZQ-01', verdict: 'proven', tests: [{ title: 'ZQ-01 holds', status: 'passed' }] },
        { id: 'ZQ-02', verdict: 'proven', tests: [{ title: 'ZQ-02 holds', status: 'passed' }] },
      ],
      logs: expect.arrayContaining([expect.stringContaining('vitest.json')]),
    });
    const text = readFileSync(join(folder, 'out/evidence.md'), 'utf8');
    expect(text).toContain('# Evidence: green');
    expect(text).toContain('| ZQ-01 | proven | Something holds. | passed: ZQ-01 holds');
  });

  it('SU-36 says that the tree was changed since its commit', async () => {
    appendFileSync(join(project, 'package.json'), '\n');
    await evaluate();
    const evidence = JSON.parse(readFileSync(join(folder, 'out/evidence.json'), 'utf8'));
    expect(evidence.environment).toMatchObject({ commit, dirty: true });
  });

  it('SU-30 one test may prove two requirements, and a group may carry the id', async () => {
    results({ 'ZQ-01 ZQ-02 group > test': 'passed' });
    expect(await evaluate()).toMatchObject({ code: 0 });
  });

  it('SU-30 is red for a requirement without a test', async () => {
    results({ 'ZQ-01 holds': 'passed', 'ZQ-022 is another': 'passed' });
    const { code, text } = await evaluate();
    expect(code).toBe(1);
    expect(text).toContain('ZQ-02 (request.md:2) has no test');
  });

  it('SU-31 is red for a failed test, a broken file and a failed runner', async () => {
    results({ 'ZQ-01 holds': 'failed', 'ZQ-01 holds too': 'passed', 'ZQ-02 holds': 'passed' });
    expect(await evaluate()).toMatchObject({
      code: 1,
      text: expect.stringContaining('ZQ-01 (request.md:1) has a failed test'),
    });
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed', 'no id': 'failed' });
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('"no id" failed') });
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed' }, '', 'failed');
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('failed outside of its tests') });
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed' });
    expect(await evaluate({ exitCode: 1 })).toMatchObject({ code: 1, text: expect.stringContaining('ended with 1') });
  });

  it.each(['skipped', 'pending', 'todo'] as const)('SU-32 is red for a test that is %s', async (status) => {
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed', 'ZQ-02 holds too': status });
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('"ZQ-02 holds too" was skipped') });
  });

  it('SU-32 takes a skip that is on the list, but not as the only proof', async () => {
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed', 'ZQ-02 holds too': 'skipped' });
    put('test/allowed-skips.json', JSON.stringify([{ test: 'ZQ-02 holds too', reason: 'no such machine' }]));
    expect(await evaluate()).toMatchObject({ code: 0 });
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds too': 'skipped' });
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('has only skipped tests') });
  });

  it('SU-32 is red for a listed skip without a reason or without a skipped test', async () => {
    put('test/allowed-skips.json', JSON.stringify([{ test: 'ZQ-01 holds', reason: ' ' }]));
    const { code, text } = await evaluate();
    expect(code).toBe(1);
    expect(text).toContain('gives no reason');
    expect(text).toContain('is not skipped, or there is no such test');
  });

  it('SU-33 is red for an id that no specification has', async () => {
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed', 'ZQ-03 was renamed': 'passed' });
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('names ZQ-03') });
    results({ 'ZQ-01 holds': 'passed', 'ZQ-02 holds': 'passed' });
    put('test/full/a.test.ts', "it('ZQ-09 was renamed')");
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('a.test.ts names ZQ-09') });
  });

  it('SU-33 is red for an id that is there twice', async () => {
    put('spec/mount.md', '- **ZQ-02** Twice.\n');
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('ZQ-02 is there twice') });
  });

  it('SU-34 leaves a full requirement to a full test that names it', async () => {
    put('spec/full.md', '- **ZQ-05** (full) Holds at length.\n');
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('no full test names it') });
    put('test/full/a.test.ts', "it('ZQ-05 holds')");
    expect(await evaluate()).toMatchObject({ code: 0, text: expect.stringContaining('1 left to the full tests') });
    results({ 'something else': 'passed' }, '-full');
    await evaluate({}, '-full');
    expect(await evaluate()).toMatchObject({ code: 1, text: expect.stringContaining('its full test did not run') });
    results({ 'ZQ-05 holds': 'passed' }, '-full');
    expect(await evaluate()).toMatchObject({ code: 0, text: expect.stringContaining('3 proven') });
  });

  it('SU-35 is red without results, without their description, and for another tree', async () => {
    expect(await justEvaluate()).toMatchObject({ code: 1, text: expect.stringContaining('do not say which run') });
    expect(await evaluate({ tree: 'other' })).toMatchObject({ code: 1, text: expect.stringContaining('another tree') });
    rmSync(join(folder, 'results/vitest.json'));
    expect(await justEvaluate()).toMatchObject({ code: 1, text: expect.stringContaining('no test results') });
  });
});
