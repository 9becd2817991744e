import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { MessageRow } from '../../contract/events.js';
import { type EventLine, followEvents } from '../client/event-rows.js';
import { findMount } from '../client/find-mount.js';
import { followLines } from '../client/follow-lines.js';
import { findSession, listSessions } from '../client/sessions.js';
import { printable } from '../color.js';
import type { Console } from '../console.js';
import { eventText } from '../event-text.js';
import { formatTable } from '../table.js';

const DEFAULT_ROWS = 20;

interface SessionsOptions {
  readonly mount?: string;
  readonly agent?: string;
  readonly json?: true;
}

interface TailOptions extends SessionsOptions {
  readonly follow?: true;
  readonly lines: number;
}

export function registerSessions(program: Command, console: Console): void {
  const sessions = program
    .command('sessions')
    .summary('look at conversations')
    .description('Lists conversations, prints one, or follows its events.');

  addCommon(sessions.command('list').summary('list the sessions').description('Lists the sessions, newest first.'))
    .addHelpText('after', '\nExamples:\n  bridle sessions list\n  bridle sessions list --agent default --json')
    .action(async (_options: unknown, command: Command) => {
      await list(command.optsWithGlobals<SessionsOptions>(), console);
    });

  addCommon(sessions.command('show').summary('print a conversation').description('Prints the messages of a session.'))
    .argument('<session>', 'name of the session')
    .addHelpText('after', '\nExamples:\n  bridle sessions show review\n  bridle sessions show review --json')
    .action(async (session: string, _options: unknown, command: Command) => {
      await show(session, command.optsWithGlobals<SessionsOptions>(), console);
    });

  addCommon(
    sessions.command('tail').summary('print newest events').description('Prints the newest events of a session.'),
  )
    .argument('<session>', 'name of the session')
    .option('-f, --follow', 'go on with each new event until Ctrl-C')
    .option('-n, --lines <count>', 'how many events to begin with', count, DEFAULT_ROWS)
    .addHelpText(
      'after',
      '\nExamples:\n  bridle sessions tail review\n  bridle sessions tail -f review --json | jq .type',
    )
    .action(async (session: string, _options: unknown, command: Command) => {
      await tail(session, command.optsWithGlobals<TailOptions>(), console);
    });
}

function addCommon(command: Command): Command {
  return command.option('-a, --agent <name>', 'only this agent').option('--json', 'print JSON, one value a line');
}

function count(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

async function list(options: SessionsOptions, console: Console): Promise<void> {
  const mount = await findMount(options.mount, console.env);
  const sessions = await listSessions(mount, options.agent);
  if (options.json) {
    await console.stdout.write(sessions.map((session) => `${JSON.stringify(session)}\n`).join(''));
    return;
  }
  const rows = sessions.map(({ agent, session, state, runs, updatedAt }) => [
    agent,
    session,
    state,
    String(runs),
    updatedAt,
  ]);
  await console.stdout.write(formatTable(['AGENT', 'SESSION', 'STATE', 'RUNS', 'UPDATED'], rows));
}

async function show(session: string, options: SessionsOptions, console: Console): Promise<void> {
  const mount = await findMount(options.mount, console.env);
  const directory = await findSession(mount, session, options.agent);
  const { signal } = new AbortController();
  const { paint, isTerminal } = console.stdout;
  for await (const line of followLines(join(directory, 'messages.jsonl'), { mount, signal, once: true })) {
    if (options.json) {
      await console.stdout.write(`${line}\n`);
      continue;
    }
    const { role, ts, content } = JSON.parse(line) as MessageRow;
    const text = isTerminal ? printable(content) : content;
    await console.stdout.write(`${paint('bold', role)} ${paint('dim', ts)}\n${text.trimEnd()}\n\n`);
  }
}

async function tail(session: string, options: TailOptions, console: Console): Promise<void> {
  const mount = await findMount(options.mount, console.env);
  const path = join(await findSession(mount, session, options.agent), 'events.jsonl');
  const print = async ({ line, row }: EventLine): Promise<void> => {
    await console.stdout.write(`${options.json ? line : eventText(row, console.stdout.paint)}\n`);
  };

  const stop = new AbortController();
  const newest: EventLine[] = [];
  for await (const event of followEvents(path, { mount, signal: stop.signal, once: true })) {
    newest.push(event);
    if (newest.length > options.lines) newest.shift();
  }
  for (const event of newest) await print(event);
  if (!options.follow) return;

  const last = newest.at(-1)?.row.seq ?? 0;
  const leave = () => stop.abort();
  process.once('SIGINT', leave);
  try {
    for await (const event of followEvents(path, { mount, signal: stop.signal })) {
      if (event.row.seq > last) await print(event);
    }
  } finally {
    process.removeListener('SIGINT', leave);
  }
}
