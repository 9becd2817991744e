import { SetupError } from '../lib/project.mjs';

const MINIMUM = [20, 19];

/**
 * Refuses what Bridle cannot run on, before anything is changed.
 * @param {{ version: string, platform: string, arch: string }} host `process` itself, or a description of another host
 * @throws SetupError
 */
export function checkPlatform(host) {
  const [major = 0, minor = 0] = host.version.replace(/^v/, '').split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = MINIMUM;
  if (major < wantedMajor || (major === wantedMajor && minor < wantedMinor)) {
    throw new SetupError(`Node.js >= ${MINIMUM.join('.')} is needed; this is ${host.version}`);
  }
  if (host.platform !== 'linux' || !['x64', 'arm64'].includes(host.arch)) {
    throw new SetupError(`Linux on x64 or arm64 is needed; this is ${host.platform} on ${host.arch}`);
  }
}
