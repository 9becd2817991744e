import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BridleError } from '../../contract/errors.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import { identify } from '../../native/identity.js';
import { probeContainment, signalProcess } from '../../native/process.js';
import type { LeaseRecord } from '../lease-record.js';
import type { BoundaryStrength, Cleanup, HeldChild, HoldOrder, Platform } from '../platform.js';
import { removeCgroup } from './cgroup.js';
import { type CgroupPlaces, findCgroupPlaces } from './cgroup-mounts.js';
import { settleBoundary } from './settle.js';
import { SupervisedChild } from './supervised-child.js';
import { removeWitness } from './witness.js';

export interface LinuxOptions {
  readonly stateDir: string;
  readonly supervisorExecutable: string;
  readonly cleanupTimeoutMs: number;
  readonly graceMs: number;
  /** false: contain by subreaper alone even where cgroups can be made. */
  readonly cgroup: boolean;
  /** `starttime`: do as on a kernel without pidfs. */
  readonly birthToken: 'pidfs' | 'starttime' | undefined;
}

/** Controllers as status.json names them. */
const CONTROLLER_NAMES = { memory: 'memory', pids: 'processes', cpu: 'cpu' } as const;

function ownIdentity(scheme: 'pidfs' | 'starttime'): ProcessIdentity {
  const identity = identify(process.pid, scheme);
  if (!identity) throw new BridleError('INTERNAL', 'this process has no identity');
  return identity;
}

/** The part of a token that says where a process id means something: boot and PID namespace. */
function scopeOf(identity: ProcessIdentity): string {
  return identity.token.split(':', 2).join(':');
}

/** Supervisors, subreapers and cgroups. */
export class LinuxPlatform implements Platform {
  readonly owner: ProcessIdentity;
  readonly strength: BoundaryStrength;
  readonly #options: LinuxOptions;
  readonly #places: CgroupPlaces;
  readonly #prefix: string;
  readonly #witnesses: string;
  readonly #landlock: number | null;

  /** @throws BridleError PLATFORM_UNSUPPORTED on a kernel that cannot contain a process */
  constructor(options: LinuxOptions) {
    const support = probeContainment();
    if (!support.pidfd || !support.subreaper) {
      throw new BridleError('PLATFORM_UNSUPPORTED', 'this kernel has no pidfd (Linux 5.4 or newer has)');
    }
    this.#options = options;
    this.owner = ownIdentity(options.birthToken ?? (support.pidfs ? 'pidfs' : 'starttime'));
    this.#witnesses = join(options.stateDir, 'witness');
    mkdirSync(this.#witnesses, { recursive: true, mode: 0o700 });
    // Several daemons may share a cgroup: each knows its own directories by the state directory.
    const state = createHash('sha256').update(realpathSync(options.stateDir)).digest('hex').slice(0, 8);
    this.#prefix = `bridle-${state}-`;
    const places = findCgroupPlaces();
    this.#places = options.cgroup ? places : { ...places, root: null };
    this.#landlock = support.landlock;
    this.strength = this.#describe();
  }

  hold(order: HoldOrder): HeldChild {
    return new SupervisedChild(order, {
      ...this.#options,
      places: this.#places,
      cgroupName: this.#prefix + order.leaseId,
      witness: this.#witnessOf(order.leaseId),
      landlock: this.#landlock,
      scheme: this.owner.scheme,
    });
  }

  settle(record: LeaseRecord): Promise<Cleanup> {
    const { cleanupTimeoutMs, graceMs } = this.#options;
    return settleBoundary(record, { cleanupTimeoutMs, graceMs, witness: this.#witnessOf(record.id) });
  }

  look(identity: ProcessIdentity): 'alive' | 'gone' | 'unknown' {
    if (scopeOf(identity) !== scopeOf(this.owner)) return 'unknown';
    return signalProcess(identity, 0) === 'sent' ? 'alive' : 'gone';
  }

  async forget(leaseId: string): Promise<void> {
    await removeWitness(this.#witnessOf(leaseId));
  }

  /**
   * A daemon that dies between the making of a cgroup and the record leaves the directory, empty: its child never got
   * through the gate. Its supervisor may have left a witness.
   */
  async removeLeftovers(known: () => Promise<ReadonlySet<string>>): Promise<void> {
    const controllers = Object.values(this.#places.controllers).map(({ directory }) => directory);
    const directories = new Set([...(this.#places.root === null ? [] : [this.#places.root]), ...controllers]);
    const witnesses = await readdir(this.#witnesses);
    const cgroups = await Promise.all([...directories].map((directory) => this.#cgroupsIn(directory)));
    const ids = await known();
    for (const id of witnesses) if (!ids.has(id)) await this.forget(id);
    for (const { id, path } of cgroups.flat()) if (!ids.has(id)) await removeCgroup(path);
  }

  /** Cgroups of leases of this state directory. */
  async #cgroupsIn(directory: string): Promise<{ id: string; path: string }[]> {
    const names = (await readdir(directory)).filter((name) => name.startsWith(this.#prefix));
    return names.map((name) => ({ id: name.slice(this.#prefix.length), path: join(directory, name) }));
  }

  #witnessOf(leaseId: string): string {
    return join(this.#witnesses, leaseId);
  }

  #describe(): BoundaryStrength {
    const controllers = Object.keys(this.#places.controllers) as (keyof typeof CONTROLLER_NAMES)[];
    const alone = this.#places.root === null;
    const weakness = 'No cgroup can be made: processes may be left when supervisor and reaper are killed at once.';
    return {
      kind: alone ? 'subreaper' : 'cgroup+subreaper',
      weakness: alone ? weakness : null,
      birthToken: this.owner.scheme,
      landlock: this.#landlock,
      limits: controllers.map((name) => CONTROLLER_NAMES[name]),
    };
  }
}
