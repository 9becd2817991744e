import type { ProcessIdentity } from '../contract/identity.js';
import { nativeExports } from './addon.js';

interface IdentityExports {
  identify(pid: number): ProcessIdentity | null;
}

const addon = nativeExports<IdentityExports>();

/** Identity of a living process, or undefined when there is none with this pid. */
export function identify(pid: number): ProcessIdentity | undefined {
  return addon.identify(pid) ?? undefined;
}
