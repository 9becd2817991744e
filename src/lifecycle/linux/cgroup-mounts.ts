import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Where this process may make cgroups, for boundaries (version 2) and for limits (either version). */

/** Leaf that the daemon moves into: a cgroup that gives controllers to others must hold no process itself. */
const DAEMON_LEAF = 'bridle-daemon';

export type Controller = 'memory' | 'pids' | 'cpu';
const CONTROLLERS: readonly Controller[] = ['memory', 'pids', 'cpu'];

export interface ControllerPlace {
  readonly version: 1 | 2;
  /** Directory below which a cgroup with this controller can be made. */
  readonly directory: string;
}

export interface CgroupPlaces {
  /** Directory below which boundaries are made (version 2), or null. */
  readonly root: string | null;
  readonly controllers: Readonly<Partial<Record<Controller, ControllerPlace>>>;
}

interface Mount {
  readonly root: string;
  readonly mountpoint: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** mountinfo writes space, tab, newline and backslash as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_whole, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function cgroupMounts(): Mount[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.flatMap((line) => {
    const [place = '', kind = ''] = line.split(' - ');
    const [, , , root = '', mountpoint = ''] = place.split(' ');
    const [type = '', , options = ''] = kind.split(' ');
    if (type !== 'cgroup2' && type !== 'cgroup') return [];
    return [{ root: unescaped(root), mountpoint: unescaped(mountpoint), type, options: options.split(',') }];
  });
}

/** Our own cgroup as a directory of a mount; undefined when the mount does not show it. */
function ownDirectory(mount: Mount): string | undefined {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, controllers, ...rest] = line.split(':');
    const path = rest.join(':');
    const matches =
      mount.type === 'cgroup2'
        ? controllers === '' && path !== ''
        : controllers !== '' && controllers?.split(',').every((name) => mount.options.includes(name));
    if (!matches || path.includes('/..')) continue;
    // A bind mount shows a part of the hierarchy: our path counts from that part.
    if (mount.root !== '/' && path !== mount.root && !path.startsWith(`${mount.root}/`)) return undefined;
    return join(mount.mountpoint, mount.root === '/' ? path : path.slice(mount.root.length));
  }
  return undefined;
}

/** Only making a cgroup shows whether it can be made. @returns what `look` says about one that is removed again */
function probe(directory: string, look: (path: string) => boolean): boolean {
  // Not the process id: processes of other PID namespaces and our own threads may probe at the same time.
  const path = join(directory, `bridle-probe-${randomBytes(8).toString('hex')}`);
  try {
    mkdirSync(path);
  } catch {
    // Refused, whatever the reason: boundaries do without it, and `strength` says so.
    return false;
  }
  try {
    return look(path);
  } finally {
    rmdirSync(path);
  }
}

function has(file: string): (path: string) => boolean {
  return (path) => {
    try {
      accessSync(join(path, file), constants.W_OK);
      return true;
    } catch {
      return false;
    }
  };
}

/** cgroup.kill came with Linux 5.14. Below a cgroup with threads of its own, none can have processes: `domain invalid`. */
function holdsBoundaries(path: string): boolean {
  return has('cgroup.kill')(path) && readFileSync(join(path, 'cgroup.type'), 'utf8') === 'domain\n';
}

/** The controllers that a version 2 directory can give to cgroups below it; asks for them. */
function enableControllers(root: string): Controller[] {
  const offered = readFileSync(join(root, 'cgroup.controllers'), 'utf8').trim().split(' ');
  const wanted = CONTROLLERS.filter((name) => offered.includes(name));
  // The kernel gives pids and cpu in spite of processes, and then lets no cgroup below have one.
  return wanted.length > 0 && isWithoutProcesses(root) ? wanted.filter((name) => enable(root, name)) : [];
}

function enable(root: string, name: Controller): boolean {
  try {
    writeFileSync(join(root, 'cgroup.subtree_control'), `+${name}`);
    return true;
  } catch {
    // Refused, whatever the reason: what it would limit is named as not enforced.
    return false;
  }
}

/**
 * Whether a cgroup has no processes, or need not: the root of the hierarchy. When this process is the only one, as in a
 * unit with Delegate=yes, it moves into a leaf.
 */
function isWithoutProcesses(root: string): boolean {
  if (!existsSync(join(root, 'cgroup.type'))) return true;
  const members = readFileSync(join(root, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
  if (members.length === 0) return true;
  if (members.length > 1 || members[0] !== String(process.pid)) return false;
  const leaf = join(root, DAEMON_LEAF);
  try {
    mkdirSync(leaf, { recursive: true });
    writeFileSync(join(leaf, 'cgroup.procs'), '0');
    return true;
  } catch {
    return false;
  }
}

/** Looks, makes and removes cgroups: call it once. */
export function findCgroupPlaces(): CgroupPlaces {
  const mounts = cgroupMounts();
  const controllers: Partial<Record<Controller, ControllerPlace>> = {};
  const unified = mounts.find(({ type }) => type === 'cgroup2');
  const own = unified && ownDirectory(unified);
  const candidate = own !== undefined && basename(own) === DAEMON_LEAF ? dirname(own) : own;
  const root = candidate !== undefined && probe(candidate, holdsBoundaries) ? candidate : null;
  if (root !== null) {
    for (const name of enableControllers(root)) controllers[name] = { version: 2, directory: root };
  }
  for (const name of CONTROLLERS) {
    const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes(name));
    const directory = mount && ownDirectory(mount);
    if (directory === undefined || controllers[name]) continue;
    if (probe(directory, has('cgroup.procs'))) controllers[name] = { version: 1, directory };
  }
  return { root, controllers };
}
