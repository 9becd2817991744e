import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Harness } from '../contract/harness.js';
import { type Change, type FuseSession, type Inode, serve } from '../native/fuse.js';
import type { Service } from '../service/service.js';
import { harnessInodes, ROOT } from './inodes.js';
import { MountPoint, type MountPointOptions } from './mount-point.js';
import { mountUsers } from './mount-users.js';
import { bytes, directory, file, type Ownership, put } from './nodes.js';
import { Projection, type ProjectionDeps } from './projection.js';
import { README } from './readme.js';
import { RequestHandler } from './requests.js';

export interface MountDeps extends ProjectionDeps {
  readonly service: Service;
  readonly harnesses: ReadonlyMap<string, Harness>;
  /** Serial of each harness directory. */
  readonly harnessSerials: ReadonlyMap<string, number>;
  readonly version: string;
  readonly log: Logger;
  /** Somebody unmounted it, or the connection was aborted. */
  readonly onEnd: () => void;
}

/** The mounted tree of one daemon. */
export class Mount implements AsyncDisposable {
  readonly path: string;
  readonly #point: MountPoint;
  readonly #session: FuseSession;
  readonly #projection: Projection;
  readonly #owner: Ownership;
  readonly #deps: MountDeps;
  /** What each info.json showed last. */
  readonly #infos = new Map<Inode, string>();

  private constructor(
    point: MountPoint,
    session: FuseSession,
    projection: Projection,
    owner: Ownership,
    deps: MountDeps,
  ) {
    this.path = point.path;
    this.#point = point;
    this.#session = session;
    this.#projection = projection;
    this.#owner = owner;
    this.#deps = deps;
  }

  /** Mounts and serves. The tree is complete when this resolves. @throws BridleError MOUNT_BUSY, MOUNT_FAILED */
  static async open(options: MountPointOptions, deps: MountDeps): Promise<Mount> {
    const projection = new Projection(deps);
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, time: Date.now() };
    projection.publish(await rootNodes(owner, deps));
    await projection.build();

    const point = await MountPoint.open(options);
    let session: FuseSession | undefined;
    try {
      const handler = new RequestHandler(deps.service, projection, (error) => {
        deps.log.error({ err: error }, 'a request through the mount failed');
      });
      const served = serve({
        mountpoint: point.path,
        fd: point.fd,
        root: directory(ROOT.directory, owner, 0o755),
        onRequest: (request) => void handler.handle(request, served),
        onAbort: (token) => deps.log.debug({ token }, 'a caller stopped waiting'),
        onEnd: deps.onEnd,
      });
      session = served;
      projection.attach(served);
      deps.sessions.onEvents((agent, name) => projection.eventsRecorded(agent, name));
      deps.service.observe(projection);
      return new Mount(point, served, projection, owner, deps);
    } catch (error) {
      if (!point.close()) point.detach();
      await session?.stop();
      throw error;
    }
  }

  /** Asks the mount something through the kernel that only the session threads can answer. */
  async probe(): Promise<void> {
    await statfs(this.path);
  }

  /** Replaces `status` and `status.json`. */
  setStatus(line: string, json: unknown): void {
    const owner = { ...this.#owner, time: Date.now() };
    this.#projection.publish([
      put(ROOT.directory, 'status', bytes(ROOT.status, owner, `${line}\n`, 0o444)),
      put(ROOT.directory, 'status.json', bytes(ROOT.statusJson, owner, `${JSON.stringify(json)}\n`, 0o444)),
    ]);
  }

  /** Shows what changed in the harnesses: programs are installed and removed while the daemon runs. */
  async refreshHarnesses(): Promise<void> {
    const nodes = await harnessNodes({ ...this.#owner, time: Date.now() }, this.#deps);
    const changed = nodes.filter(({ node }) => {
      const text = Buffer.from(node.bytes).toString();
      if (this.#infos.get(node.inode) === text) return false;
      this.#infos.set(node.inode, text);
      return true;
    });
    if (changed.length > 0) this.#projection.publish(changed);
  }

  /** Unmounts, then ends the session threads. Who still uses the mount is named, and loses it. */
  async close(): Promise<void> {
    if (!this.#point.close()) {
      this.#deps.log.warn({ users: await mountUsers(this.path) }, 'the mount is in use: detaching it');
      this.#point.detach();
    }
    await this.#session.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

async function rootNodes(owner: Ownership, deps: MountDeps): Promise<Change[]> {
  const root = ROOT.directory;
  const directories = [...deps.harnesses.keys()].map((name) => {
    const inodes = harnessInodes(deps.harnessSerials.get(name) ?? 0);
    return put(ROOT.harnesses, name, directory(inodes.directory, owner, 0o555));
  });
  return [
    put(root, 'README.md', bytes(ROOT.readme, owner, README, 0o444)),
    put(root, 'version', bytes(ROOT.version, owner, `${deps.version}\n`, 0o444)),
    put(root, 'audit.jsonl', file(ROOT.audit, owner, join(deps.stateDir, 'audit.jsonl'), 0o400)),
    put(root, 'agents', directory(ROOT.agents, owner, 0o755)),
    put(root, 'harnesses', directory(ROOT.harnesses, owner, 0o555)),
    ...directories,
    ...(await harnessNodes(owner, deps)),
  ];
}

/** `harnesses/<h>/info.json` as it is now. */
function harnessNodes(owner: Ownership, deps: MountDeps) {
  return Promise.all(
    [...deps.harnesses].map(async ([name, harness]) => {
      const inodes = harnessInodes(deps.harnessSerials.get(name) ?? 0);
      const info = { schema: 'bridle.harness/v1', ...harness.info(), ...(await harness.healthCheck()) };
      return put(inodes.directory, 'info.json', bytes(inodes.info, owner, `${JSON.stringify(info)}\n`, 0o444));
    }),
  );
}
