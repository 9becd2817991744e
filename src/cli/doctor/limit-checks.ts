import { readFile } from 'node:fs/promises';
import type { Check, Finding } from './check.js';

/** Descriptors that a busy daemon has open: eight for a run, of which there may be 256, and its own. */
const OPEN_FILES = 4096;
/** The buffers that requests of the kernel are copied to, with room to spare. */
const LOCKED_MEMORY_BYTES = 4 * 1024 * 1024;

/** What this process may use, and what the kernel lets a user do. */
export function limitChecks(): Check[] {
  return [
    {
      code: 'OPEN_FILES',
      required: false,
      meaning: `A run needs eight open files: with fewer than ${OPEN_FILES} many runs at once fail to start.`,
      look: () => limit('Max open files', OPEN_FILES, `ulimit -n ${OPEN_FILES}, or LimitNOFILE= in the unit`),
    },
    {
      code: 'LOCKED_MEMORY',
      required: false,
      meaning: 'The buffers of the mount cannot be locked: a daemon that is killed may fail requests on their way.',
      look: () => limit('Max locked memory', LOCKED_MEMORY_BYTES, 'ulimit -l 4096, or LimitMEMLOCK= in the unit'),
    },
    {
      code: 'USER_NAMESPACES',
      required: false,
      meaning: 'Agents that build a sandbox of their own out of user namespaces cannot do it.',
      look: userNamespaces,
    },
  ];
}

/** The hard limit counts: Node.js raises the number of open files to it. */
async function limit(name: string, least: number, fix: string): Promise<Finding> {
  const line = (await textOf('/proc/self/limits')).split('\n').find((text) => text.startsWith(name)) ?? '';
  const [, hard = ''] = line.slice(name.length).trim().split(/\s+/);
  if (hard === 'unlimited') return { ok: true, found: hard };
  return Number(hard) >= least ? { ok: true, found: hard } : { ok: false, found: hard || 'unknown', fix };
}

/** The switches that distributions use, each of which is absent where it does not exist. */
const SWITCHES = [
  { file: '/proc/sys/user/max_user_namespaces', off: '0', fix: 'sysctl user.max_user_namespaces=15000' },
  { file: '/proc/sys/kernel/unprivileged_userns_clone', off: '0', fix: 'sysctl kernel.unprivileged_userns_clone=1' },
  {
    file: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    off: '1',
    fix: 'sysctl kernel.apparmor_restrict_unprivileged_userns=0',
  },
];

async function userNamespaces(): Promise<Finding> {
  for (const { file, off, fix } of SWITCHES) {
    if ((await textOf(file)).trim() === off) return { ok: false, found: `${file} is ${off}`, fix };
  }
  const found = (await textOf('/proc/sys/user/max_user_namespaces')).trim();
  return found === '' ? { ok: false, found: 'this kernel has none' } : { ok: true, found: `up to ${found}` };
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch {
    // The kernel has no such file: the caller says what that means.
    return '';
  }
}
