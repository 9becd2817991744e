import { spawn } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { EventRow } from '../../src/contract/events.js';
import { handIn, response, rows } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';
import { until } from '../support/until.js';

/** Says something, waits for the file `go`, says something else. */
const program = (directory: string): string => `
cat > /dev/null
echo '{"type":"text","text":"before"}'
while [ ! -e '${directory}/go' ]; do sleep 0.02; done
echo '{"type":"text","text":"after"}'
echo '{"type":"final","ok":true}'
`;

/** A program that prints rows without an end. */
class Reader implements Disposable {
  readonly ended: Promise<unknown>;
  readonly #child;
  #text = '';

  constructor(command: string, ...args: string[]) {
    this.#child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child.stdout.setEncoding('utf8').on('data', (part: string) => {
      this.#text += part;
    });
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  get rows(): EventRow[] {
    const complete = this.#text.slice(0, this.#text.lastIndexOf('\n') + 1);
    return complete
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as EventRow);
  }

  async untilRead(text: string): Promise<void> {
    await until(() => this.#text.includes(text), `${text} is read`);
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}

it('MT-65 follow and tail -f show the events of a run while it goes on', async () => {
  await using daemon = await TestDaemon.start();
  await daemon.end();
  await writeFile(join(daemon.directory, 'program'), program(daemon.directory));
  await writeFile(daemon.configFile, `[harness.script]\nprogram = "/bin/sh"\nargs = ["${daemon.directory}/program"]\n`);
  await daemon.start();
  const agent = daemon.agent();
  expect(await handIn(agent, 'slow', { prompt: 'x', harness: 'script', session: 's' })).toBeUndefined();
  const session = join(agent, 'sessions', 's');
  await until(async () => (await readdir(join(agent, 'sessions'))).includes('s'), 'the session appears');
  using follower = new Reader('/bin/cat', join(session, 'follow'));
  using tail = new Reader('tail', '-n', '+1', '-f', join(session, 'events.jsonl'));
  using late = new Reader('dd', `if=${join(session, 'follow')}`, 'bs=4k', `skip=${2 * 2 ** 38}`, 'iflag=skip_bytes');
  for (const reader of [follower, tail]) await reader.untilRead('before');
  await writeFile(join(daemon.directory, 'go'), '');
  expect(await response(agent, 'slow')).toMatchObject({ outcome: 'success' });
  for (const reader of [follower, tail, late]) await reader.untilRead('run.terminal');
  const all = await rows(join(session, 'events.jsonl'));
  expect(follower.rows).toEqual(all);
  expect(tail.rows).toEqual(all);
  expect(late.rows).toEqual(all.slice(1));
  // Who still follows does not keep the daemon from ending.
  expect(await daemon.end()).toBe(0);
  await follower.ended;
});
