import { describe, expect, it } from 'vitest';
import type { CheckResult } from '../../src/cli/doctor/check.js';
import { bridle } from './support.js';

const CODES = [
  'NODE_VERSION',
  'KERNEL_VERSION',
  'FUSE_DEVICE',
  'FUSERMOUNT',
  'FUSE_ALLOW_OTHER',
  'NATIVE_ADDON',
  'PIDFS',
  'CGROUP_DELEGATION',
  'STALE_MOUNT',
  'STATE_WRITABLE',
  'DAEMON',
  'HARNESS_CODEX',
  'HARNESS_PI',
  'HARNESS_ECHO',
  'HARNESS_SCRIPT',
];

describe('bridle doctor', () => {
  it('SU-62 gives every check a stable code, and a meaning where something is wrong', async () => {
    const { code, stdout } = await bridle(['doctor', '--json'], { env: { BRIDLE_MOUNT: '/nonexistent/bridle' } });
    const results = JSON.parse(stdout) as CheckResult[];
    expect(results.map((result) => result.code)).toEqual(CODES);
    for (const result of results) expect(result.meaning === null).toBe(result.status === 'ok');
    expect(code).toBe(results.some((result) => result.status === 'failed') ? 1 : 0);
    expect(results.find((result) => result.code === 'DAEMON')).toMatchObject({
      status: 'warning',
      fix: 'bridle daemon',
    });
  });

  it('SU-62 exits 1 when something required is missing', async () => {
    const { code, stdout } = await bridle(['doctor'], { env: { BRIDLE_STATE: '/dev/null/state' } });
    expect(stdout).toMatch(/^failed {2,}STATE_WRITABLE +\S.*\n {8}The daemon keeps/m);
    expect(code).toBe(1);
  });
});
