// One task: worker.mjs ORDER (JSON). Plays the daemon: as large as ordered, leases in a journal on disk. Prints the
// result as JSON.
import { mkdir } from 'node:fs/promises';
import { Journal } from '../../dist/durable/journal.js';
import { JournalLeaseStore } from '../../dist/lifecycle/journal-lease-store.js';
import { Lifecycle } from '../../dist/lifecycle/lifecycle.js';
import { empty } from './empty.mjs';
import { exit } from './exit.mjs';
import { fillTo } from './fill.mjs';
import { start } from './start.mjs';
import { threads } from './threads.mjs';

const TASKS = { start, exit, empty, threads };
const OPERATION = { id: 'bench', kind: 'run', harness: 'bench' };

const order = JSON.parse(process.argv[2]);
await mkdir(order.stateDir);
const journal = await Journal.open(order.stateDir);
const lifecycle = new Lifecycle({ stateDir: order.stateDir, store: new JournalLeaseStore(journal) });
// Held until the end: what nobody refers to is no longer part of the heap.
const filling = fillTo(order.heapMib);
const result = await TASKS[order.task]({ lease: () => lifecycle.lease(OPERATION) }, order);
await journal.close();
console.log(JSON.stringify({ ...result, filledMib: filling.length }));
