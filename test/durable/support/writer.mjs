// Writes numbered rows until it is killed or fails. Prints `now N` when row N was accepted and `durable N` when it was
// durable, each right after the call that said so.
import { writeSync } from 'node:fs';
import { Journal } from '../../../dist/durable/journal.js';

const [directory = '', size = '100', segmentBytes = '65536'] = process.argv.slice(2);
const journal = await Journal.open(directory, { segmentBytes: Number(segmentBytes) });
const print = (line) => writeSync(1, `${line}\n`);
let next = journal.size('count') / 16;
try {
  for (;;) {
    const burst = 1 + (next % 5);
    for (let i = 0; i < burst; i++) {
      next++;
      const row = JSON.stringify({ n: next, fill: 'x'.repeat(Number(size)) });
      journal.append(`rows/${next % 3}.jsonl`, `${row}\n`);
      journal.put('last', `${next}\n`);
      journal.append('count', `${next}\n`.padStart(16, '0'), { now: true });
      print(`now ${next}`);
    }
    const promised = next;
    await journal.durable();
    print(`durable ${promised}`);
  }
} catch (error) {
  print(`failed ${error.code} ${journal.failure === error}`);
  const again = await journal.durable().then(
    () => 'resolved',
    (reason) => reason.code,
  );
  print(`again ${again}`);
  await journal.close();
}
