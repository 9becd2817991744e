import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from './project.mjs';

/**
 * Every regular file below a folder, sorted, as paths relative to the root.
 * @param {string} folder relative to the root
 * @returns {string[]} empty when the folder does not exist
 */
export function filesBelow(folder) {
  try {
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/**
 * Hash of the names and contents of files and of further values. Times never enter it, so a checkout or a copy changes
 * nothing.
 * @param {readonly string[]} files relative to the root
 * @param {...string} values
 */
export function fingerprint(files, ...values) {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = readFileSync(join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  hash.update(JSON.stringify(values));
  return hash.digest('hex');
}

/** @param {string} file relative to the root @returns {string | undefined} undefined when there is none */
export function readStamp(file) {
  try {
    return readFileSync(join(root, file), 'utf8').trim();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** @param {string} file relative to the root @param {string} value */
export function writeStamp(file, value) {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), `${value}\n`);
}

/** Version of an installed package. @param {string} name @returns {string} "none" when it is not installed */
export function installedVersion(name) {
  const manifest = readStamp(join('node_modules', name, 'package.json'));
  return manifest === undefined ? 'none' : JSON.parse(manifest).version;
}

/** @param {unknown} error */
function isMissing(error) {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}
