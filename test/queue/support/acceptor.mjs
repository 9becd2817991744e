// Accepts requests until it is killed and prints id and serial of each right after its acceptance.
import { writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Journal } from '../../../dist/durable/journal.js';
import { Serials } from '../../../dist/durable/serials.js';
import { Queue } from '../../../dist/queue/queue.js';

const [directory = '', round = ''] = process.argv.slice(2);
const journal = await Journal.open(directory);
const serials = Serials.open(directory);
const queue = await Queue.open(journal, () => serials.next(), { perAgent: 1_000_000 });
for (let i = 0; ; i++) {
  const id = `${round}-${i}`;
  const request = { prompt: `do ${id}` };
  const bytes = Buffer.from(JSON.stringify(request));
  const { entry } = queue.accept({ agent: 'main', id, bytes, request, caller: { uid: 1000, gid: 1001, pid: 42 } });
  writeSync(1, `${id} ${entry.serial}\n`);
  if (i % 4 === 0) await nextTurn();
}
