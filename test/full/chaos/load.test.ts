import { expect, it } from 'vitest';
import { expectAccountsInOrder } from '../../support/accounts.js';
import { response } from '../../support/client.js';
import { TestDaemon } from '../../support/daemon.js';
import { Load } from '../../support/load.js';

it('RQ-02 RQ-22 RQ-28 1 000 requests from 16 clients in sh, Python and Node are all answered once', async () => {
  await using daemon = await TestDaemon.start();
  await using load = new Load(daemon.agent(), { kinds: ['sh', 'python', 'node'], processes: 16, each: 63 });
  await load.finish();
  expect(load.acknowledged).toHaveLength(16 * 63);
  for (const id of load.acknowledged) await response(daemon.agent(), id);
  await expectAccountsInOrder(daemon.mount, 'default', load.acknowledged);
});
