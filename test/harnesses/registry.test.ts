import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createHarnesses } from '../../src/harnesses/registry.js';
import { Workbench } from './workbench.js';

describe('the registry', () => {
  it('HA-01 lists codex, pi, echo, script in this order and offers only codex and pi to the automatic choice', () => {
    const all = [...createHarnesses({ path: '', env: {} })];
    expect(all.map(([name]) => name)).toEqual(['codex', 'pi', 'echo', 'script']);
    expect(all.map(([name, harness]) => [name, harness.info().automatic])).toEqual([
      ['codex', true],
      ['pi', true],
      ['echo', false],
      ['script', false],
    ]);
    expect(all.every(([name, harness]) => harness.info().name === name)).toBe(true);
  });

  it('HA-05 finds a program that is installed later, and only in absolute directories of PATH', async () => {
    await using bench = await Workbench.create();
    const harness = createHarnesses({ path: `.::${bench.directory}`, env: {} }).get('codex');
    expect(harness?.info().program).toBeNull();
    const program = join(bench.directory, 'codex');
    await writeFile(program, '#!/bin/sh\n');
    expect(await harness?.healthCheck()).toMatchObject({ healthy: false });
    await chmod(program, 0o755);
    expect(harness?.info().program).toBe(program);
    expect(await harness?.healthCheck()).toEqual({ healthy: true, reason: null });
  });

  it('HA-05 says that script has no program when none is configured', async () => {
    const harness = createHarnesses({ path: '', env: {} }).get('script');
    expect(await harness?.healthCheck()).toMatchObject({
      healthy: false,
      reason: expect.stringContaining('configured'),
    });
  });
});
