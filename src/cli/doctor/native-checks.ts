import { mkdtemp, readFile, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BoundaryStrength } from '../../lifecycle/lifecycle.js';
import { VolatileLeaseStore } from '../volatile-lease-store.js';
import type { Check, Finding } from './check.js';

/** A mount that has not answered for this long does not count as answering. */
const ANSWER_LIMIT_MS = 2000;

/** What only the native part can tell: whether it loads, containment, mounts. */
export function nativeChecks(): Check[] {
  return [
    {
      code: 'NATIVE_ADDON',
      required: true,
      meaning: 'The native part or libfuse 3 is missing: nothing can be mounted or started.',
      look: () => guarded(nativeAddon),
    },
    {
      code: 'PIDFS',
      required: false,
      meaning:
        'This kernel (before 6.9) names processes by their start time only, which a fast reuse of a PID can repeat.',
      look: () =>
        guarded(async () => {
          const { birthToken } = await strength();
          return { ok: birthToken === 'pidfs', found: birthToken };
        }),
    },
    {
      code: 'CGROUP_DELEGATION',
      required: false,
      meaning: 'Runs are contained without a cgroup: a subreaper finds their processes, which is slower and weaker.',
      look: () =>
        guarded(async () => {
          const { kind, weakness } = await strength();
          if (kind === 'cgroup+subreaper') return { ok: true, found: kind };
          const fix = 'systemd-run --user --scope -p Delegate=yes bridle daemon';
          return { ok: false, found: weakness ?? kind, fix };
        }),
    },
    {
      code: 'RUN_LIMITS',
      required: false,
      meaning: 'Limits of a run on what is missing here are not enforced; the run says so.',
      look: () =>
        guarded(async () => {
          const { limits } = await strength();
          const missing = (['memory', 'processes', 'cpu'] as const).filter((name) => !limits.includes(name));
          if (missing.length === 0) return { ok: true, found: limits.join(', ') };
          const fix = 'systemd-run --user --scope -p Delegate=yes bridle daemon';
          return { ok: false, found: `none on ${missing.join(', ')}`, fix };
        }),
    },
    {
      code: 'LANDLOCK',
      required: false,
      meaning: 'Runs that are confined to some files are refused: this kernel (before 5.13, or without it) cannot.',
      look: () =>
        guarded(async () => {
          const { landlock } = await strength();
          if (landlock !== null) return { ok: true, found: `version ${landlock}` };
          return { ok: false, found: 'none', fix: 'add landlock to lsm= on the command line of the kernel' };
        }),
    },
    {
      code: 'STALE_MOUNT',
      required: false,
      meaning: 'A daemon that was killed left its mount; the next `bridle daemon` on the same place removes it.',
      look: () => guarded(staleMounts),
    },
  ];
}

async function guarded(look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look();
  } catch (error) {
    return { ok: false, found: (error as Error).message.split('\n')[0] ?? 'unknown error' };
  }
}

async function nativeAddon(): Promise<Finding> {
  await import('../../native/fuse.js');
  // The loaded library's file name ends in its version: libfuse3.so.3.14.0.
  const maps = await readFile('/proc/self/maps', 'utf8');
  const library = /\S*\/libfuse3\.so\.\S+/.exec(maps)?.[0];
  return { ok: true, found: library === undefined ? 'loaded' : basename(library) };
}

/** How strong the boundaries of a daemon started here would be. */
async function strength(): Promise<BoundaryStrength> {
  const { Lifecycle } = await import('../../lifecycle/lifecycle.js');
  const stateDir = await mkdtemp(join(tmpdir(), 'bridle-doctor-'));
  try {
    await using lifecycle = new Lifecycle({ stateDir, store: new VolatileLeaseStore() });
    return lifecycle.strength;
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
}

async function staleMounts(): Promise<Finding> {
  const { listFuseMounts } = await import('../../native/fuse.js');
  const ours = listFuseMounts().filter((mount) => mount.type === 'fuse.bridle');
  const stale: string[] = [];
  for (const { mountpoint } of ours) {
    if (!(await answers(mountpoint))) stale.push(mountpoint);
  }
  if (stale.length === 0) return { ok: true, found: `${ours.length} living, none stale` };
  const command = process.getuid?.() === 0 ? 'umount -l' : 'fusermount3 -uz';
  return { ok: false, found: stale.join(' '), fix: stale.map((path) => `${command} '${path}'`).join('; ') };
}

async function answers(mountpoint: string): Promise<boolean> {
  const late = sleep(ANSWER_LIMIT_MS, false, { ref: false });
  // The kernel answers a stat from its cache. ENOTCONN says that nobody serves it; EACCES, that it is somebody else's.
  const answered = statfs(mountpoint).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOTCONN',
  );
  return await Promise.race([answered, late]);
}
