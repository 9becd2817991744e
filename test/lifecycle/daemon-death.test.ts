import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { leaseRecordSchema } from '../../src/lifecycle/lease-record.js';
import { identify } from '../../src/native/identity.js';
import { DIST } from './fake-daemon.js';
import { BOUNDARIES, isAlive, kill, STUBBORN, untilGone, writtenIdentity } from './support.js';

const FIXTURE = join(import.meta.dirname, 'fixtures/silent-death.mjs');

// The end of the control channel alone, with a daemon that lives, is the case of a JavaScript worker: see LC-13.
it.each(BOUNDARIES)(
  'LC-33 the parent-death signal alone ends everything, with nobody left to tell, $name',
  async ({ cgroup }) => {
    const directory = mkdtempSync(join(tmpdir(), 'death-'));
    const daemon = spawn(process.execPath, [FIXTURE, directory, JSON.stringify({ cgroup }), STUBBORN], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, BRIDLE_DIST_DIR: DIST },
    });
    const exit = once(daemon, 'exit');
    let holder: ReturnType<typeof identify>;
    try {
      const [line] = (await once(createInterface({ input: daemon.stdout }), 'line')) as [string];
      const said = JSON.parse(line) as { lease: string; holder: number };
      holder = identify(said.holder);
      const text = readFileSync(join(directory, 'leases', `${said.lease}.json`), 'utf8');
      const record = leaseRecordSchema.parse(JSON.parse(text));
      const all = [
        await writtenIdentity(directory, 'child'),
        await writtenIdentity(directory, 'grandchild'),
        record.reaper ?? record.supervisor,
        record.supervisor,
      ];
      daemon.stdin.write('go\n');
      for (const identity of all) await untilGone(identity);
      // The channel was held open all the time.
      expect(holder && isAlive(holder)).toBe(true);
    } finally {
      kill(holder ?? null);
      daemon.kill('SIGKILL');
      await exit;
      rmSync(directory, { recursive: true, force: true });
    }
  },
);
