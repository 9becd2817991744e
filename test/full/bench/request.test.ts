import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const RUN = fileURLToPath(new URL('../../../bench/run.mjs', import.meta.url));

describe('npm run bench', () => {
  it('SU-71 request prints rows with stable ids, percentiles and a peer of the same run', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [RUN, 'request', '--json']);
    const { bench, machine, rows } = JSON.parse(stdout) as {
      bench: string;
      machine: object;
      rows: { id: string; value: number; unit: string; ratio?: number; p50?: number; p99?: number }[];
    };
    expect(bench).toBe('request');
    expect(Object.keys(machine)).toEqual(['cpu', 'cpus', 'kernel', 'node']);
    expect(rows.map((row) => row.id)).toEqual([
      'request.rate.1',
      'request.latency.1',
      'request.rate.16',
      'request.latency.16',
      'request.rss',
      'request.threads',
    ]);
    for (const row of rows) expect(row.value).toBeGreaterThan(0);
    for (const row of rows.slice(0, 4)) expect(row.ratio).toBeGreaterThan(0);
    for (const row of rows.filter(({ id }) => id.startsWith('request.latency'))) {
      expect(row.p99).toBeGreaterThanOrEqual(row.p50 ?? Number.POSITIVE_INFINITY);
    }
  });
});
