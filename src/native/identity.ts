import type { ProcessIdentity } from '../contract/identity.js';
import { nativeExports } from './addon.js';

interface IdentityExports {
  identify(pid: number, scheme: ProcessIdentity['scheme'] | null): ProcessIdentity | null;
}

const addon = nativeExports<IdentityExports>();

/**
 * Identity of a living process, or undefined when there is none with this pid.
 * @param scheme which birth token to read; default the strongest that the kernel has
 */
export function identify(pid: number, scheme?: ProcessIdentity['scheme']): ProcessIdentity | undefined {
  return addon.identify(pid, scheme ?? null) ?? undefined;
}
