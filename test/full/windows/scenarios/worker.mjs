/** A JavaScript worker ends while its child and a detached grandchild run. */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { family, familySpec, identify, makeLifecycle, OPERATION, report, until } from './support.mjs';

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
  const [pids] = await once(worker, 'message');
  const before = pids.map((pid) => identify(pid) !== undefined);
  await worker.terminate();
  await until(() => pids.every((pid) => identify(pid) === undefined));
  report({ before });
} else {
  const lifecycle = makeLifecycle();
  await lifecycle.lease(OPERATION).launcher.launch(familySpec);
  parentPort.postMessage(await family());
}
