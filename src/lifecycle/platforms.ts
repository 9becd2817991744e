import { BridleError } from '../contract/errors.js';
import { type LinuxOptions, LinuxPlatform } from './linux/linux-platform.js';
import type { Platform } from './platform.js';
import { WindowsPlatform } from './windows/windows-platform.js';

/** @throws BridleError PLATFORM_UNSUPPORTED where nothing can contain a process */
export function choosePlatform(name: NodeJS.Platform, options: LinuxOptions): Platform {
  switch (name) {
    case 'linux':
      return new LinuxPlatform(options);
    case 'win32':
      return new WindowsPlatform(options);
    default:
      throw new BridleError('PLATFORM_UNSUPPORTED', `${name} has no containment`);
  }
}
