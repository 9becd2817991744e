import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const RUN = fileURLToPath(new URL('../../../bench/run.mjs', import.meta.url));

interface Row {
  readonly id: string;
  readonly value: number;
  readonly unit: string;
  readonly p50?: number;
  readonly p99?: number;
  readonly peer?: string;
  readonly peerValue?: number;
  readonly ratio?: number;
}

describe('npm run bench', () => {
  it('SU-73 lifecycle prints rows with stable ids, percentiles and peers of the same run', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [RUN, 'lifecycle', '--json']);
    const { bench, rows } = JSON.parse(stdout) as { bench: string; rows: Row[] };
    expect(bench).toBe('lifecycle');
    expect(rows.map(({ id, unit, peer }) => [id, unit, peer])).toEqual([
      ['lifecycle.start.50mib', 'ms', 'posix_spawn'],
      ['lifecycle.start.50mib.node', 'ms', 'posix_spawn'],
      ['lifecycle.start.1gib', 'ms', 'posix_spawn'],
      ['lifecycle.start.1gib.node', 'ms', 'posix_spawn'],
      ['lifecycle.exit', 'ms', 'waitpid'],
      ['lifecycle.exit.node', 'ms', 'waitpid'],
      ['lifecycle.empty.7', 'ms', undefined],
      ['lifecycle.empty.500', 'ms', undefined],
      ['lifecycle.threads.200', 'threads', undefined],
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
    for (const { value, p50, p99 } of rows.filter(({ unit }) => unit === 'ms')) {
      expect(value).toBe(p50);
      expect(p99).toBeGreaterThanOrEqual(value);
    }
    for (const { value, peerValue, ratio } of rows.filter(({ peer }) => peer !== undefined)) {
      expect(peerValue).toBeGreaterThan(0);
      expect(ratio).toBeCloseTo(value / (peerValue ?? 0));
    }
  });
});
