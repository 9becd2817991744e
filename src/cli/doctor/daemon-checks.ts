import { access, constants, readFile, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { HarnessHealth, HarnessInfo } from '../../contract/harness.js';
import { defaultPaths } from '../../daemon/paths.js';
import { createHarnesses } from '../../harnesses/registry.js';
import { findMount } from '../client/find-mount.js';
import type { Check, Finding } from './check.js';

/** State directory, running daemon, and the programs of the harnesses. */
export function daemonChecks(env: NodeJS.ProcessEnv, mount: string | undefined): Check[] {
  return [
    {
      code: 'STATE_WRITABLE',
      required: true,
      meaning: 'The daemon keeps everything it must not lose in its state directory.',
      look: () => stateWritable(defaultPaths(env).state),
    },
    {
      code: 'STATE_FILESYSTEM',
      required: false,
      meaning: 'What is acknowledged must survive a loss of power; that file system does not keep it, or not for sure.',
      look: () => stateFileSystem(defaultPaths(env).state),
    },
    {
      code: 'DAEMON',
      required: false,
      meaning: 'No daemon serves the mount: requests cannot be handed in.',
      look: async () => {
        try {
          return { ok: true, found: await findMount(mount, env) };
        } catch (error) {
          return { ok: false, found: (error as Error).message, fix: 'bridle daemon' };
        }
      },
    },
    ...harnessChecks(env, mount),
  ];
}

/** As the daemon sees its harnesses when one runs, since its PATH decides; else as one started here would. */
function harnessChecks(env: NodeJS.ProcessEnv, mount: string | undefined): Check[] {
  const harnesses = createHarnesses({ path: env['PATH'] ?? '', env: definedOf(env) });
  return [...harnesses].map(([name, harness]) => ({
    code: `HARNESS_${name.toUpperCase().replaceAll('-', '_')}`,
    required: false,
    meaning: `Requests cannot go to ${name}.`,
    look: async () => {
      const published = await publishedHarness(name, env, mount);
      const { healthy, reason, program } = published ?? { ...harness.info(), ...(await harness.healthCheck()) };
      return { ok: healthy, found: healthy ? (program ?? 'built in') : (reason ?? 'not healthy') };
    },
  }));
}

type PublishedHarness = HarnessInfo & HarnessHealth;

async function publishedHarness(
  name: string,
  env: NodeJS.ProcessEnv,
  mount: string | undefined,
): Promise<PublishedHarness | undefined> {
  try {
    const path = join(await findMount(mount, env), 'harnesses', name, 'info.json');
    return JSON.parse(await readFile(path, 'utf8')) as PublishedHarness;
  } catch {
    // No daemon, or one of another version: what this installation knows is the next best.
    return undefined;
  }
}

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined));
}

/** Looks at the directory itself, or at the nearest one above that exists: the daemon makes the rest. */
async function lookAtState(state: string, look: (directory: string) => Promise<Finding>): Promise<Finding> {
  for (let directory = state; ; directory = dirname(directory)) {
    try {
      return await look(directory);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' || directory === '/') return { ok: false, found: `${directory}: ${code}` };
    }
  }
}

function stateWritable(state: string): Promise<Finding> {
  return lookAtState(state, async (directory) => {
    await access(directory, constants.W_OK | constants.X_OK);
    return { ok: true, found: state };
  });
}

/** Numbers of statfs(2), from linux/magic.h and the manual page. */
const UNSAFE_FILE_SYSTEMS = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x6969, 'nfs'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x65735546, 'fuse'],
]);

function stateFileSystem(state: string): Promise<Finding> {
  return lookAtState(state, async (directory) => {
    const { type } = await statfs(directory);
    const name = UNSAFE_FILE_SYSTEMS.get(type >>> 0);
    if (name === undefined) return { ok: true, found: `0x${(type >>> 0).toString(16)}` };
    return { ok: false, found: name, fix: 'bridle daemon --state DIR, with DIR on a local disk' };
  });
}
