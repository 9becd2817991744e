import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { expectAccountsInOrder } from '../support/accounts.js';
import { response } from '../support/client.js';
import { TestDaemon } from '../support/daemon.js';
import { Load } from '../support/load.js';

it('RQ-02 requests of many clients are answered exactly once while the daemon is killed again and again', async () => {
  await using daemon = await TestDaemon.start();
  await using load = new Load(daemon.agent(), { kinds: ['sh', 'node'], processes: 6, each: 20 });
  for (let kill = 0; kill < 5; kill++) {
    await sleep(Math.random() * 200);
    await daemon.end('SIGKILL');
    await daemon.start();
  }
  await load.finish();
  expect(load.acknowledged).toHaveLength(120);
  for (const id of load.acknowledged) await response(daemon.agent(), id);
  await expectAccountsInOrder(daemon.mount, 'default', load.acknowledged);
});
