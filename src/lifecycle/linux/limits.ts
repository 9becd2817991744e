import { join } from 'node:path';
import type { NotEnforced, ResourceLimits } from '../../contract/harness.js';
import type { CgroupPlaces, Controller, ControllerPlace } from './cgroup-mounts.js';

/** A cgroup that the supervisor makes beside the boundary's, or that one itself, and what it writes there. */
export interface LimitDirectory {
  readonly path: string;
  readonly settings: readonly { readonly file: string; readonly value: string }[];
}

export interface LimitPlan {
  readonly directories: readonly LimitDirectory[];
  readonly notEnforced: readonly NotEnforced[];
}

/** Period of the processor limit, microseconds: the kernel's default in both versions. */
const CPU_PERIOD_US = 100_000;

const CONTROLLER_OF: Readonly<Record<keyof ResourceLimits, Controller>> = {
  memoryBytes: 'memory',
  processes: 'pids',
  cpus: 'cpu',
};

/** Files of a controller; Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel. */
function settingsOf(wish: keyof ResourceLimits, value: number, version: 1 | 2): LimitDirectory['settings'] {
  switch (wish) {
    case 'memoryBytes':
      return [{ file: version === 2 ? 'memory.max' : 'memory.limit_in_bytes', value: String(value) }];
    case 'processes':
      return [{ file: 'pids.max', value: String(value) }];
    case 'cpus': {
      const quota = Math.max(1_000, Math.round(value * CPU_PERIOD_US));
      if (version === 2) return [{ file: 'cpu.max', value: `${quota} ${CPU_PERIOD_US}` }];
      return [
        { file: 'cpu.cfs_period_us', value: String(CPU_PERIOD_US) },
        { file: 'cpu.cfs_quota_us', value: String(quota) },
      ];
    }
  }
}

/**
 * @param name name of the lease's cgroup
 * @param boundary whether the boundary itself has a cgroup; without one, version 2 limits have no place
 */
export function planLimits(limits: ResourceLimits, places: CgroupPlaces, name: string, boundary: boolean): LimitPlan {
  // Controllers may share a hierarchy, and version 2 has one for all: one directory then holds several settings.
  const directories = new Map<string, LimitDirectory['settings']>();
  const notEnforced: NotEnforced[] = [];
  for (const [wish, value] of Object.entries(limits) as [keyof ResourceLimits, number | undefined][]) {
    if (value === undefined) continue;
    const controller = CONTROLLER_OF[wish];
    const place: ControllerPlace | undefined = places.controllers[controller];
    if (place === undefined || (place.version === 2 && !boundary)) {
      notEnforced.push({ wish, reason: `The ${controller} controller is not available to this daemon.` });
      continue;
    }
    const path = join(place.directory, name);
    directories.set(path, [...(directories.get(path) ?? []), ...settingsOf(wish, value, place.version)]);
  }
  return { directories: [...directories].map(([path, settings]) => ({ path, settings })), notEnforced };
}
