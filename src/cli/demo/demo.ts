import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BridleError } from '../../contract/errors.js';
import { DEFAULT_AGENT } from '../../contract/names.js';
import { startDaemon } from '../../daemon/daemon.js';
import { createLogger } from '../../daemon/log.js';
import { followEvents, isTerminal } from '../client/event-rows.js';
import { awaitResponse } from '../client/response.js';
import type { Console } from '../console.js';
import { runShellClient } from './shell-client.js';
import { treeText } from './tree-text.js';

const ID = 'hello';
const CLIENT = `printf '%s\\n' '{"prompt": "Hello, files.", "harness": "echo"}' > inbox/.${ID}.tmp
mv inbox/.${ID}.tmp inbox/${ID}.req.json`;
const TREE_DEPTH = 3;

/**
 * Shows the way of one request in a place of its own: tree, request, live events, response, how to go on. Unmounts and
 * removes everything it made, also when the signal ends it early.
 */
export async function demo(console: Console, signal: AbortSignal): Promise<void> {
  await using place = await temporaryPlace();
  await using daemon = await daemonIn(place.path, console);
  const { mount } = daemon;
  const agent = join(mount, 'agents', DEFAULT_AGENT);
  const outbox = join(agent, 'outbox');
  const say = async (title: string, text: string): Promise<void> => {
    signal.throwIfAborted();
    await console.stdout.write(`${console.stdout.paint('bold', title)}\n${indented(text)}\n`);
  };

  await say(`The mount, ${mount}:`, await treeText(mount, TREE_DEPTH));
  await say(`A shell hands a request in, in agents/${DEFAULT_AGENT}:`, CLIENT);
  await runShellClient(CLIENT, { cwd: agent, scratch: place.path, path: console.env['PATH'] ?? '/usr/bin:/bin' });

  await console.stdout.write(`${console.stdout.paint('bold', `What happens, outbox/${ID}.events.jsonl:`)}\n`);
  for await (const { line, row } of followEvents(join(outbox, `${ID}.events.jsonl`), { mount, signal })) {
    await console.stdout.write(indented(line));
    if (isTerminal(row)) break;
  }
  const response = await awaitResponse(mount, DEFAULT_AGENT, ID, signal);
  await say(`\nThe response, outbox/${ID}.resp.json:`, JSON.stringify(response, null, 2));
  if (response?.outcome !== 'success') throw new BridleError('INTERNAL', 'the demo request did not succeed');
  await say('How to go on:', GO_ON);
}

const GO_ON = `bridle daemon &                          serve your own mount
bridle run --harness echo "hello"        hand a request in and print its text
bridle run --harness codex "hello"       the same with an agent that is installed
bridle doctor                            what is missing on this machine
docs/tutorial.md                         from nothing to a codex run`;

function indented(text: string): string {
  return text
    .replace(/\n$/, '')
    .replace(/^(?=.)/gm, '  ')
    .concat('\n');
}

async function temporaryPlace(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'bridle-demo-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

async function daemonIn(place: string, console: Console): Promise<AsyncDisposable & { readonly mount: string }> {
  const state = join(place, 'state');
  await mkdir(state, { mode: 0o700 });
  const daemon = await startDaemon({
    mount: join(place, 'mount'),
    state,
    config: undefined,
    env: console.env,
    log: createLogger({ env: console.env, isTerminal: console.stderr.isTerminal, level: 'warn' }),
  });
  return { mount: daemon.mount, [Symbol.asyncDispose]: () => daemon.stop() };
}
