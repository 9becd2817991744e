import { BridleError } from '../contract/errors.js';

/** Names at the top of the state directory that are not targets. */
const RESERVED = new Set(['journal', 'lock', 'id', 'serials']);
const MAX_TARGET_BYTES = 1024;
const MAX_COMPONENT_BYTES = 255;
/** Printable ASCII without the characters that JSON escapes, so that a target is written as it is. */
const COMPONENT = /^[\x20\x21\x23-\x2e\x30-\x5b\x5d-\x7e]+$/;

/** What is wrong with a target path, or undefined when it may be used. */
export function targetFault(target: string): string | undefined {
  if (target.length === 0 || target.length > MAX_TARGET_BYTES) return `has ${target.length} bytes`;
  const components = target.split('/');
  if (RESERVED.has(components[0] ?? '')) return 'is reserved';
  for (const component of components) {
    if (component === '' || component === '.' || component === '..') return 'has an empty or relative component';
    if (component.length > MAX_COMPONENT_BYTES) return 'has a component of more than 255 bytes';
    if (!COMPONENT.test(component)) return 'has a character that is not allowed';
  }
  return undefined;
}

/** @throws BridleError INTERNAL when the path is not a plain relative one */
export function checkTarget(target: string): void {
  const fault = targetFault(target);
  if (fault !== undefined) throw new BridleError('INTERNAL', `target ${JSON.stringify(target.slice(0, 200))} ${fault}`);
}

/** Every directory that leads to a target, nearest first, ending with '' (the state directory itself). */
export function directoriesOf(target: string): string[] {
  const directories: string[] = [];
  for (let end = target.lastIndexOf('/'); end > 0; end = target.lastIndexOf('/', end - 1)) {
    directories.push(target.slice(0, end));
  }
  directories.push('');
  return directories;
}
