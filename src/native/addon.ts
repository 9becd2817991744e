import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where the native build put its results; BRIDLE_NATIVE_DIR names another build, for example one with sanitizers. */
const directory = process.env['BRIDLE_NATIVE_DIR'] ?? fileURLToPath(new URL('../../build/Release/', import.meta.url));

const addon: unknown = createRequire(import.meta.url)(join(directory, 'bridle.node'));

/**
 * What native/addon.cc exports, seen as the part `T` of it. Only the typed faces in this folder call this: each declares
 * and documents the functions it uses.
 */
export function nativeExports<T>(): T {
  return addon as T;
}

/** Absolute path of the supervisor executable that was built with the addon. */
export const supervisorExecutable = join(directory, 'bridle-supervisor');
