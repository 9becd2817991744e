import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { DIST } from './fake-daemon.js';
import { CGROUP_ROOT } from './support.js';

const THREADED = ['cpu', 'pids'];

/** A cgroup for a daemon, as a service manager delegates one. */
class Delegated implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'delegated-'));
  readonly cgroup: string;

  constructor(parent: string) {
    this.cgroup = join(parent, `outside-${randomBytes(8).toString('hex')}`);
    mkdirSync(this.cgroup);
  }

  /** Controllers of version 2 that it may give to cgroups below. */
  get offered(): string[] {
    return readFileSync(join(this.cgroup, 'cgroup.controllers'), 'utf8').trim().split(' ');
  }

  get given(): string {
    return readFileSync(join(this.cgroup, 'cgroup.subtree_control'), 'utf8').trim();
  }

  start(): Record<string, unknown> {
    const script = 'echo $$ > "$1/cgroup.procs" && exec "$2" "$3" "$4"';
    const fixture = join(import.meta.dirname, 'fixtures/limited.mjs');
    const args = ['-c', script, 'sh', this.cgroup, process.execPath, fixture, this.directory];
    return JSON.parse(
      execFileSync('/bin/sh', args, { encoding: 'utf8', env: { ...process.env, BRIDLE_DIST_DIR: DIST } }),
    ) as Record<string, unknown>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.directory, { recursive: true, force: true });
    for (const path of [join(this.cgroup, 'bridle-daemon'), this.cgroup]) {
      await until(() => !existsSync(path) || removed(path), `${path} is removed`);
    }
  }
}

function removed(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
    throw error;
  }
}

describe.runIf(CGROUP_ROOT !== null)('a daemon in a cgroup below the root of the hierarchy', () => {
  const parent = CGROUP_ROOT ?? '';

  it('LC-54 that is alone there moves into a leaf where controllers are offered, and limits hold', async () => {
    await using delegated = new Delegated(parent);
    const hasControllers = delegated.offered.some((name) => ['memory', ...THREADED].includes(name));
    const result = delegated.start();
    expect(result).toMatchObject({ kind: 'cgroup+subreaper', empty: true });
    const name = delegated.cgroup.slice(parent.length);
    expect(result['place']).toContain(hasControllers ? `${name}/bridle-daemon` : name);
    const enforced = (result['enforced'] as string[]).includes('processes');
    if (delegated.offered.includes('pids')) expect(enforced).toBe(true);
    expect(result).toMatchObject({ failed: enforced, notEnforced: enforced ? [] : [{ wish: 'processes' }] });
  });

  it('LC-54 that is not alone there asks for no controller, and its programs start', async () => {
    await using delegated = new Delegated(parent);
    const other = spawn('/bin/sleep', ['300'], { stdio: 'ignore' });
    try {
      writeFileSync(join(delegated.cgroup, 'cgroup.procs'), String(other.pid));
      expect(delegated.start()).toMatchObject({ kind: 'cgroup+subreaper', empty: true });
      expect(delegated.given).toBe('');
    } finally {
      const ended = once(other, 'exit');
      other.kill('SIGKILL');
      await ended;
    }
  });

  it('LC-54 whose cgroups below may hold no process does without them', async () => {
    await using delegated = new Delegated(parent);
    // Each version 2 hierarchy lets a cgroup become threaded, whatever its controllers.
    const domain = join(delegated.cgroup, 'threaded');
    mkdirSync(domain);
    try {
      writeFileSync(join(domain, 'cgroup.type'), 'threaded');
      expect(delegated.start()).toMatchObject({ kind: 'subreaper', empty: true });
    } finally {
      rmdirSync(domain);
    }
  });
});
