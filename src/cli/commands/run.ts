import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { BridleError } from '../../contract/errors.js';
import { DEFAULT_AGENT, MAX_REQUEST_BYTES } from '../../contract/names.js';
import { permissionsSchema, type Request, requestSchema } from '../../contract/request.js';
import type { Outcome } from '../../contract/terminal.js';
import { followEvents, isTerminal } from '../client/event-rows.js';
import { findMount } from '../client/find-mount.js';
import { handIn, newRequestId } from '../client/hand-in.js';
import { awaitResponse } from '../client/response.js';
import type { Console } from '../console.js';
import type { Finish } from '../finish.js';
import { RunView } from '../run-view.js';

/** Exit codes of `bridle run`: timed_out as timeout(1) has it, cancelled as a shell reports SIGINT. */
const EXIT_BY_OUTCOME: Record<Outcome, number> = { success: 0, failed: 1, timed_out: 124, cancelled: 130 };
const EXIT_DETACHED = 130;

interface RunOptions {
  readonly mount?: string;
  readonly agent: string;
  readonly harness?: string;
  readonly session?: string;
  readonly model?: string;
  readonly cwd?: string;
  readonly permissions?: string;
  readonly timeout?: number;
  readonly json?: true;
}

export function registerRun(program: Command, console: Console, finish: Finish): void {
  program
    .command('run')
    .summary('run one prompt and print what comes back')
    .description('Hands a request in through the mount, prints its text as it comes and ends with its outcome.')
    .argument('<prompt>', 'what to do; - reads it from standard input')
    .option('-a, --agent <name>', 'agent that runs it', DEFAULT_AGENT)
    .option('-H, --harness <name>', 'exactly this harness')
    .option('-s, --session <name>', 'conversation to begin or to go on with')
    .option('-m, --model <name>', 'model')
    .option('-C, --cwd <dir>', 'working directory of the run')
    .addOption(new Option('--permissions <mode>', 'what the agent may do').choices(permissionsSchema.options))
    .option('--timeout <ms>', 'wall-clock limit in milliseconds', wholeNumber)
    .option('--json', 'print event rows, then the response, one JSON value a line')
    .addHelpText(
      'after',
      `
Exit code: 0 success, 1 failed, 124 timed out, 130 cancelled; a refused request: docs/errors.md.

Examples:
  bridle run --harness codex "explain src/main.ts"
  git diff | bridle run --session review -
  bridle run --json "hello" | jq -r 'select(.type == "text").text'`,
    )
    .action(async (prompt: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<RunOptions>();
      finish(await run(prompt, options, console));
    });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of milliseconds.');
  return Number(text);
}

async function run(prompt: string, options: RunOptions, console: Console): Promise<number> {
  const request = requestOf(prompt === '-' ? await readAll(console) : prompt, options);
  const mount = await findMount(options.mount, console.env);
  const id = newRequestId();
  await handIn(mount, options.agent, id, request);

  const stop = new AbortController();
  const detach = () => stop.abort();
  process.once('SIGINT', detach);
  try {
    const code = await watch({ mount, agent: options.agent, id, json: options.json === true }, console, stop.signal);
    if (code !== undefined) return code;
    await console.stderr.write(detachedHint(mount, options.agent, id));
    return EXIT_DETACHED;
  } finally {
    process.removeListener('SIGINT', detach);
  }
}

function requestOf(prompt: string, options: RunOptions): Request {
  const result = requestSchema.safeParse({
    schema: 'bridle.request/v1',
    prompt,
    session: options.session,
    harness: options.harness,
    model: options.model,
    cwd: options.cwd === undefined ? undefined : resolve(options.cwd),
    permissions: options.permissions,
    timeoutMs: options.timeout,
  });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new BridleError('REQUEST_INVALID', issue?.message ?? 'the request is invalid', {
    path: issue?.path.map(String).join('.') ?? '(root)',
  });
}

async function readAll(console: Console): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of console.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_REQUEST_BYTES) throw new BridleError('REQUEST_TOO_LARGE', 'the prompt is larger than 1 MiB');
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

interface Watched {
  readonly mount: string;
  readonly agent: string;
  readonly id: string;
  readonly json: boolean;
}

/** Shows a run to its end. @returns its exit code, or undefined when the signal came first */
async function watch(watched: Watched, console: Console, signal: AbortSignal): Promise<number | undefined> {
  const { mount, agent, id, json } = watched;
  using view = new RunView(console);
  for await (const { line, row } of followEvents(`${mount}/agents/${agent}/outbox/${id}.events.jsonl`, {
    mount,
    signal,
  })) {
    await (json ? console.stdout.write(`${line}\n`) : view.event(row));
    if (isTerminal(row)) break;
  }
  const response = await awaitResponse(mount, agent, id, signal);
  if (response === undefined) return undefined;
  await (json ? console.stdout.write(`${JSON.stringify(response)}\n`) : view.end(response));
  return EXIT_BY_OUTCOME[response.outcome];
}

function detachedHint(mount: string, agent: string, id: string): string {
  const outbox = `${mount}/agents/${agent}/outbox/${id}`;
  return `
The run goes on without this command.
  live events   tail -f ${outbox}.events.jsonl
  response      cat ${outbox}.resp.json
`;
}
