import { join } from 'node:path';
import { BridleError } from '../../contract/errors.js';
import type { LaunchSpec, NotEnforced, ProcessExit, RlimitName, Terminal } from '../../contract/harness.js';
import type { ProcessIdentity } from '../../contract/identity.js';
import { type Boundary, type Evidence, evidence } from '../lease-record.js';
import { type Cleanup, EMPTY, type HeldChild, type HoldOrder, type Ready, type StartFailure } from '../platform.js';
import { removeCgroup } from './cgroup.js';
import type { CgroupPlaces } from './cgroup-mounts.js';
import { type LimitPlan, planLimits } from './limits.js';
import type { Rlimit } from './protocol.js';
import { emptyOrphaned, removeLimits } from './settle.js';
import { type Finish, type Gated, Supervisor } from './supervisor.js';

export interface SupervisionOptions {
  readonly supervisorExecutable: string;
  readonly cleanupTimeoutMs: number;
  readonly graceMs: number;
  readonly places: CgroupPlaces;
  readonly cgroupName: string;
  readonly witness: string;
  readonly landlock: number | null;
  readonly scheme: ProcessIdentity['scheme'];
}

/** RLIMIT_* as Linux numbers them on x86-64 and arm64. */
const RLIMIT_NUMBERS: Readonly<Record<RlimitName, number>> = {
  cpu: 0,
  fsize: 1,
  data: 2,
  stack: 3,
  core: 4,
  nproc: 6,
  nofile: 7,
  memlock: 8,
  as: 9,
};

/** Version of Landlock from which truncating a file is a right of its own; before, nothing denies it. */
const LANDLOCK_WITH_TRUNCATE = 3;

/** A child behind a supervisor and a reaper. */
export class SupervisedChild implements HeldChild {
  readonly ready: Promise<Ready | StartFailure>;
  readonly terminal: Terminal | null;
  readonly #leaseId: string;
  readonly #options: SupervisionOptions;
  readonly #cgroup: string;
  readonly #limits: LimitPlan;
  readonly #supervisor: Supervisor;
  #known: { readonly child: ProcessIdentity; readonly boundary: Boundary } | undefined;

  constructor({ leaseId, spec, env }: HoldOrder, options: SupervisionOptions) {
    if (spec.paths && options.landlock === null) {
      throw new BridleError('SPAWN_FAILED', 'paths: this kernel has no Landlock, so nothing can deny other files');
    }
    this.#leaseId = leaseId;
    this.#options = options;
    const { places, cgroupName, scheme } = options;
    this.#cgroup = places.root === null ? '' : join(places.root, cgroupName);
    this.#limits = planLimits(spec.limits ?? {}, places, cgroupName, places.root !== null);
    const terminal = spec.terminal ?? null;
    const supervisor = { executable: options.supervisorExecutable, leaseId, scheme };
    this.#supervisor = new Supervisor(supervisor, {
      argv: spec.argv,
      // A start time alone does not name a process: this is its second proof.
      env: scheme === 'starttime' ? [...env, `BRIDLE_LEASE=${leaseId}`] : env,
      cwd: spec.cwd,
      cgroup: this.#cgroup,
      witness: options.witness,
      graceMs: options.graceMs,
      cleanupTimeoutMs: options.cleanupTimeoutMs,
      terminal,
      noNewPrivileges: spec.noNewPrivileges === true || spec.paths !== undefined,
      startTimeTokens: scheme === 'starttime',
      credentials: spec.credentials ?? null,
      rlimits: rlimitsOf(spec),
      limits: this.#limits.directories,
      paths: spec.paths ?? null,
    });
    this.terminal = terminal && { resize: (size) => this.#supervisor.resize(size) };
    this.ready = this.#awaitReady(spec);
  }

  get started(): HeldChild['started'] {
    return this.#supervisor.gate.answer;
  }

  get stdin(): HeldChild['stdin'] {
    return this.#supervisor.stdin;
  }

  get stdout(): HeldChild['stdout'] {
    return this.#supervisor.stdout;
  }

  get stderr(): HeldChild['stderr'] {
    return this.#supervisor.stderr;
  }

  get exited(): Promise<ProcessExit> {
    return this.#supervisor.exited;
  }

  release(): void {
    this.#supervisor.gate.open();
  }

  async empty(): Promise<Cleanup> {
    const { cleanupTimeoutMs, graceMs } = this.#options;
    return await this.#observe(await this.#supervisor.cleanUp(cleanupTimeoutMs + graceMs));
  }

  async #awaitReady(spec: LaunchSpec): Promise<Ready | StartFailure> {
    const gated = await this.#supervisor.gated;
    if (gated.kind === 'failed') return gated;
    const identity = await this.#supervisor.identity;
    if (!identity) return { kind: 'failed', step: 'supervisor', reason: 'it ended during the start' };
    const boundary = this.#boundaryOf(gated);
    this.#known = { child: gated.child, boundary };
    return {
      kind: 'ready',
      supervisor: identity,
      reaper: gated.reaper,
      child: gated.child,
      boundary,
      notEnforced: [...this.#limits.notEnforced, ...this.#unenforcedPaths(spec)],
    };
  }

  #boundaryOf(gated: Gated): Boundary {
    const paths = this.#limits.directories.map(({ path }) => path);
    const common = { processGroup: gated.child.pid, limits: paths.filter((path) => path !== this.#cgroup) };
    if (gated.inode === null) return { kind: 'subreaper', ...common };
    return { kind: 'cgroup+subreaper', cgroup: { path: this.#cgroup, inode: gated.inode }, ...common };
  }

  #unenforcedPaths(spec: LaunchSpec): NotEnforced[] {
    const { landlock } = this.#options;
    if (!spec.paths || landlock === null || landlock >= LANDLOCK_WITH_TRUNCATE) return [];
    const reason = `Landlock version ${landlock} cannot deny truncating a file; version ${LANDLOCK_WITH_TRUNCATE} can.`;
    return [{ wish: 'paths', reason }];
  }

  async #observe(finish: Finish): Promise<Cleanup> {
    switch (finish.kind) {
      case 'empty':
        return EMPTY;
      case 'not-empty': {
        const [first = 'the supervisor could not name a survivor', ...rest] = finish.survivors;
        const found = (detail: string): Evidence => evidence('boundary_not_empty', detail);
        return { empty: false, evidence: [found(first), ...rest.map(found)] };
      }
      case 'lost':
        return await this.#emptyWithout();
    }
  }

  /** Supervisor and reaper were killed: what they had started is emptied from here. */
  async #emptyWithout(): Promise<Cleanup> {
    if (!this.#known) {
      // They never reported a child. A child that waits at its gate starts nothing and dies with its parent.
      if (this.#cgroup !== '') await removeCgroup(this.#cgroup);
      await Promise.all(this.#limits.directories.map(({ path }) => removeCgroup(path)));
      return EMPTY;
    }
    const { boundary } = this.#known;
    const cleanup = await emptyOrphaned({ id: this.#leaseId, ...this.#known }, this.#options.cleanupTimeoutMs);
    if (cleanup.empty) await removeLimits(boundary);
    return cleanup;
  }
}

function rlimitsOf(spec: LaunchSpec): Rlimit[] {
  return Object.entries(spec.rlimits ?? {}).map(([name, value]) => ({
    resource: RLIMIT_NUMBERS[name as RlimitName],
    value: BigInt(value),
  }));
}
