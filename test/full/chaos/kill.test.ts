import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { expectAccountsInOrder } from '../../support/accounts.js';
import { response } from '../../support/client.js';
import { TestDaemon } from '../../support/daemon.js';
import { Load } from '../../support/load.js';
import { until } from '../../support/until.js';

const KILLS = 50;

it('RQ-02 MT-37 50 kills of the daemon under load lose nothing, double nothing and leave nothing', async () => {
  await using daemon = await TestDaemon.start();
  await using load = new Load(daemon.agent(), { kinds: ['sh', 'python', 'node'], processes: 16, each: 1_000_000 });
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(Math.random() * 300);
    await daemon.end('SIGKILL');
    await daemon.start();
  }
  await load.stop();
  expect(load.acknowledged.length).toBeGreaterThan(KILLS);
  for (const id of load.acknowledged) await response(daemon.agent(), id);
  await until(
    async () => (await readFile(join(daemon.mount, 'status'), 'utf8')).includes('0 running, 0 waiting'),
    'all is answered',
  );
  await expectAccountsInOrder(daemon.mount, 'default', load.acknowledged);
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .filter((line) => line.includes(daemon.mount));
  expect(mounts).toHaveLength(1);
});
