// One client: client.mjs (mount|bare) DIRECTORY COUNT. Prints `ready`, waits for a line, does its requests one after the
// other and prints the milliseconds of each as one JSON array.
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

const [mode, directory, count] = process.argv.slice(2);
const BODY = JSON.stringify({ prompt: 'hello', harness: 'echo' });
const prefix = `b${process.pid}-${randomBytes(4).toString('hex')}`;
const rest = new Int32Array(new SharedArrayBuffer(4));
// Quick for an answer that comes quickly, and no burden on the machine while many clients wait.
const POLL_MS = { first: 0.25, most: 4, growth: 1.25 };

const once = mode === 'mount' ? throughMount : bareHandOff;
console.log('ready');
readSync(0, Buffer.alloc(8));
const latencies = [];
for (let index = 0; index < Number(count); index += 1) {
  const started = performance.now();
  once(`${prefix}-${index}`);
  latencies.push(performance.now() - started);
}
console.log(JSON.stringify(latencies));

function throughMount(id) {
  const inbox = join(directory, 'inbox');
  handOff(join(inbox, `.${id}.tmp`), join(inbox, `${id}.req.json`));
  const answer = join(directory, 'outbox', `${id}.resp.json`);
  for (let pause = POLL_MS.first; !existsSync(answer); pause = Math.min(pause * POLL_MS.growth, POLL_MS.most)) {
    Atomics.wait(rest, 0, 0, pause);
  }
  const { outcome, text } = JSON.parse(readFileSync(answer, 'utf8'));
  if (outcome !== 'success' || text !== 'hello') throw new Error(`${id}: ${outcome}`);
}

function bareHandOff(id) {
  const final = join(directory, `${id}.req.json`);
  handOff(join(directory, `.${id}.tmp`), final);
  const parent = openSync(directory, 'r');
  fsyncSync(parent);
  closeSync(parent);
  unlinkSync(final);
}

function handOff(temporary, final) {
  const file = openSync(temporary, 'wx', 0o600);
  writeSync(file, BODY);
  fsyncSync(file);
  closeSync(file);
  renameSync(temporary, final);
}
