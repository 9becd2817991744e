// Takes a state directory, prints some serials, and waits to be killed.
import { writeSync } from 'node:fs';
import { StateDir } from '../../../dist/durable/state-dir.js';

const state = await StateDir.open(process.argv[2] ?? '');
const serials = Array.from({ length: 5 }, () => state.serials.next());
writeSync(1, `${JSON.stringify({ pid: process.pid, id: state.id, serials })}\n`);
setInterval(() => state.id, 1000);
