/** What a child gets: arguments, environment, directory, streams; and how it ends. */
import { helperSpec, makeLifecycle, nodeSpec, outcomeOf, report, runInLease, withChild } from './support.mjs';

const lifecycle = makeLifecycle();

const ARGUMENTS = [
  '',
  'plain',
  'two words',
  'tab\there',
  '"',
  'a"b c',
  '\\',
  'a\\',
  'a b\\',
  '\\\\"',
  'a\\"b',
  '%PATH%',
  'é€😀',
  '^&|<>',
];
const launch = await runInLease(lifecycle, {
  ...helperSpec('launch', ...ARGUMENTS),
  env: { zeta: '1', Alpha: 'ä b', _x: '', SystemRoot: 'C:\\windows' },
});
const lines = launch.stdout.split('\r\n').filter((line) => line !== '');
const valuesOf = (kind) =>
  lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));

/** Sends bytes through a child that returns them and counts them on the other stream. */
function echo(bytes) {
  const script = `process.stdin.pipe(process.stdout); let n = 0;
    process.stdin.on('data', (chunk) => { n += chunk.length; });
    process.stdin.on('end', () => { process.stderr.write(String(n)); process.exitCode = 5; });`;
  return withChild(lifecycle, nodeSpec(script), async (child) => {
    child.stdin.end(Buffer.alloc(bytes, 'x'));
    const { stdout, stderr, exit } = await outcomeOf(child);
    return { returned: stdout.length, counted: Number(stderr), exit };
  });
}

/** Pipes that a child has while another child has its own. */
function pipesBesideAnother() {
  return withChild(lifecycle, nodeSpec('setTimeout(() => {}, 300000)'), async () => {
    const { stdout } = await runInLease(lifecycle, helperSpec('pipes'));
    return stdout.trim();
  });
}

report({
  wanted: ARGUMENTS,
  got: valuesOf('argument'),
  environment: valuesOf('environment'),
  directory: valuesOf('directory'),
  helperExit: launch.exit,
  echo: await echo(3_000_000),
  pipes: await pipesBesideAnother(),
  job: (await runInLease(lifecycle, helperSpec('job'))).stdout.trim(),
  breakaway: (await runInLease(lifecycle, helperSpec('breakaway'))).stdout.trim(),
});
