import { access, constants, open, readFile, stat } from 'node:fs/promises';
import { release } from 'node:os';
import type { Check, Finding } from './check.js';

const SET_UID = 0o4000;
const APT_FUSE = 'apt-get install fuse3 libfuse3-3';

/** Node, kernel and FUSE. */
export function platformChecks(env: NodeJS.ProcessEnv): Check[] {
  return [
    {
      code: 'NODE_VERSION',
      required: true,
      meaning: 'Bridle needs Node.js 20.19 or newer.',
      look: () => {
        const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
        return Promise.resolve({ ok: major > 20 || (major === 20 && minor >= 19), found: process.version });
      },
    },
    {
      code: 'KERNEL_VERSION',
      required: true,
      meaning: 'Bridle needs Linux 5.4 or newer: pidfds hold on to the processes of a run.',
      look: () => {
        const [major = 0, minor = 0] = release().split('.').map(Number);
        const ok = process.platform === 'linux' && (major > 5 || (major === 5 && minor >= 4));
        return Promise.resolve({ ok, found: `${process.platform} ${release()}` });
      },
    },
    {
      code: 'FUSE_DEVICE',
      required: true,
      meaning: 'Without /dev/fuse nothing can be mounted; in a container it must be passed in.',
      look: () => fuseDevice(),
    },
    {
      code: 'FUSERMOUNT',
      required: process.getuid?.() !== 0,
      meaning: 'A user other than root mounts with the help of fusermount3.',
      look: () => fusermount(env),
    },
    {
      code: 'FUSE_ALLOW_OTHER',
      required: false,
      meaning: 'Other users cannot see a mount of this user; root needs no permission for that.',
      look: () => allowOther(),
    },
  ];
}

async function fuseDevice(): Promise<Finding> {
  try {
    const handle = await open('/dev/fuse', constants.O_RDWR);
    await handle.close();
    return { ok: true, found: '/dev/fuse opens' };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const fix = code === 'EACCES' ? 'chmod 0666 /dev/fuse' : 'modprobe fuse';
    return { ok: false, found: `/dev/fuse: ${code}`, fix };
  }
}

async function fusermount(env: NodeJS.ProcessEnv): Promise<Finding> {
  for (const directory of (env['PATH'] ?? '').split(':')) {
    const path = `${directory}/fusermount3`;
    try {
      await access(path, constants.X_OK);
    } catch {
      continue; // not in this directory of PATH
    }
    const { mode, uid } = await stat(path);
    if ((mode & SET_UID) !== 0 && uid === 0) return { ok: true, found: path };
    return { ok: false, found: `${path} does not run as root`, fix: `chown root ${path} && chmod u+s ${path}` };
  }
  return { ok: false, found: 'not on PATH', fix: APT_FUSE };
}

async function allowOther(): Promise<Finding> {
  if (process.getuid?.() === 0) return { ok: true, found: 'root' };
  let text = '';
  try {
    text = await readFile('/etc/fuse.conf', 'utf8');
  } catch (error) {
    return { ok: false, found: `/etc/fuse.conf: ${(error as NodeJS.ErrnoException).code}`, fix: APT_FUSE };
  }
  if (/^\s*user_allow_other\b/m.test(text)) return { ok: true, found: 'user_allow_other' };
  return { ok: false, found: 'no user_allow_other', fix: 'echo user_allow_other >> /etc/fuse.conf' };
}
