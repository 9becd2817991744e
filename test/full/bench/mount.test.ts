import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { listFuseMounts } from '../../../src/native/fuse.js';

const RUN = fileURLToPath(new URL('../../../bench/run.mjs', import.meta.url));
const FUSE_NATIVE = 'fuse-native@2.2.6';

interface Peer {
  readonly peer: string;
  readonly peerValue?: number;
  readonly ratio?: number;
  readonly missing?: string;
}

interface Row extends Peer {
  readonly id: string;
  readonly value: number;
  readonly unit: string;
  readonly p50?: number;
  readonly p99?: number;
  readonly others: readonly Peer[];
}

const ASKED = ['enoent', 'stat', 'read4k', 'list1000', 'handoff.volatile'];
const CACHED = ['stat.cached', 'list1000.cached'];
const ids = (names: readonly string[], place = '') =>
  names.flatMap((name) => [`mount.${name}${place}`, `mount.${name}${place}.4`]);

describe('npm run bench', () => {
  it('SU-74 mount prints rows with stable ids, percentiles and both peers of the same run, and leaves no mount', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [RUN, 'mount', '--json']);
    const { bench, rows } = JSON.parse(stdout) as { bench: string; rows: Row[] };
    expect(bench).toBe('mount');
    expect(rows.map(({ id }) => id)).toEqual([
      ...ids(ASKED),
      'mount.seqread',
      ...ids(CACHED),
      ...ids(ASKED, '.floating'),
      'mount.seqread.floating',
      'mount.handoff.durable16',
      'mount.stale.p99',
      'mount.stall.p99',
      'mount.rss',
      'mount.threads',
    ]);
    for (const row of rows) {
      expect(row.value).toBeGreaterThan(0);
      const peers = [row, ...row.others];
      const below = row.id.includes('seqread') ? ['file system below'] : [];
      expect(peers.map(({ peer }) => peer)).toEqual(['C libfuse', FUSE_NATIVE, ...below]);
      for (const { peer, peerValue, ratio, missing } of peers) {
        // fuse-native comes from the registry, which may be out of reach; the row then says why it has no value.
        if (missing !== undefined) {
          expect(peer).toBe(FUSE_NATIVE);
          expect(missing).not.toBe('');
          continue;
        }
        expect(peerValue).toBeGreaterThan(0);
        expect(ratio).toBeCloseTo(row.value / (peerValue ?? 0));
      }
      if (row.unit !== 'MiB' && row.unit !== 'threads') {
        expect(row.p50).toBeGreaterThan(0);
        expect(row.p99).toBeGreaterThanOrEqual(row.p50 ?? Number.POSITIVE_INFINITY);
      }
    }
    expect(listFuseMounts().filter(({ source }) => source === 'bridle-bench')).toEqual([]);
  });

  it('SU-75 mount says in every row why fuse-native has no value when npm cannot fetch it', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [RUN, 'mount', '--json'], {
      env: { ...process.env, npm_config_offline: 'true', npm_config_cache: '/dev/null' },
    });
    const { rows } = JSON.parse(stdout) as { rows: Row[] };
    for (const { others } of rows) {
      const [fuseNative] = others;
      expect(fuseNative?.peer).toBe(FUSE_NATIVE);
      expect(fuseNative?.missing).toMatch(/npm/);
      expect(fuseNative?.ratio).toBeUndefined();
    }
  });
});
