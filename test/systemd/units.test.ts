import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';

const UNITS = ['../../systemd/bridle.service', '../../systemd/user/bridle.service'];

async function settings(unit: string): Promise<Map<string, string>> {
  const text = await readFile(new URL(unit, import.meta.url), 'utf8');
  return new Map([...text.matchAll(/^([A-Za-z]+)=(.*)$/gm)].map(([, key, value]) => [key ?? '', value ?? '']));
}

/** Each gives the service a mount namespace, in which its mount would be invisible to everybody else. */
const MOUNT_NAMESPACE =
  /^(ProtectSystem|ProtectHome|ProtectKernel\w+|ProtectControlGroups|ProtectProc|ProtectHostname|ProcSubset|Private(?!Users)\w+|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|NoExecPaths|BindPaths|BindReadOnlyPaths|TemporaryFileSystem|RootDirectory|RootImage|MountImages|ExtensionImages|DynamicUser|MountFlags)$/;

/** Each sets no_new_privs in a unit that is not root's, and fusermount3 is setuid. */
const NO_NEW_PRIVILEGES =
  /^(NoNewPrivileges|SystemCall\w+|RestrictAddressFamilies|RestrictNamespaces|RestrictRealtime|RestrictSUIDSGID|RestrictFileSystems|LockPersonality|MemoryDenyWriteExecute|ProtectClock|PrivateDevices|DynamicUser)$/;

describe('units', () => {
  it.each(UNITS)('SU-69 %s is a watched notify service with delegated cgroups', async (unit) => {
    expect(Object.fromEntries(await settings(unit))).toMatchObject({
      Type: 'notify',
      NotifyAccess: 'main',
      ExecStart: '/usr/bin/bridle daemon',
      WatchdogSec: '30',
      KillMode: 'mixed',
      Delegate: 'yes',
      Restart: 'on-failure',
    });
  });

  it.each(UNITS)('SU-69 %s keeps its mount visible', async (unit) => {
    expect([...(await settings(unit)).keys()].filter((key) => MOUNT_NAMESPACE.test(key))).toEqual([]);
  });

  it('SU-69 the user unit lets fusermount3 be setuid', async () => {
    expect([...(await settings(UNITS[1] ?? '')).keys()].filter((key) => NO_NEW_PRIVILEGES.test(key))).toEqual([]);
  });
});
