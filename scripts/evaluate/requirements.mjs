import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ID = '[A-Z]{2}-\\d{2,3}';
const requirementLine = new RegExp(`^\\s*[-*] \\*\\*(${ID})\\*\\*\\s*(\\(full\\))?\\s*(.*)$`);
const anyId = new RegExp(`(?<![A-Za-z0-9-])${ID}(?![0-9A-Za-z-])`, 'g');

/**
 * @typedef {object} Requirement
 * @property {string} id
 * @property {string} file relative to the folder of specifications
 * @property {number} line
 * @property {string} text first line of the requirement
 * @property {boolean} full proven by the full tests only
 */

/**
 * Every requirement of a folder of specifications: list items that begin with `- **LC-07**`; `(full)` after it marks one
 * that only the full tests prove.
 * @param {string} folder
 * @returns {Requirement[]}
 */
export function readRequirements(folder) {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'));
  return files.sort().flatMap((file) =>
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .flatMap((content, index) => {
        const match = requirementLine.exec(content);
        if (match === null) return [];
        const [, id = '', full, text = ''] = match;
        return [{ id, file, line: index + 1, text, full: full !== undefined }];
      }),
  );
}

/** Ids named in a text, for example in the title of a test. @param {string} text @returns {string[]} */
export const idsIn = (text) => [...new Set(text.match(anyId) ?? [])];

/**
 * Ids named in the sources of the full tests, which a normal run does not execute.
 * @param {string} folder
 * @returns {Map<string, string[]>} id to files
 */
export function idsInSources(folder) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  if (!existsSync(folder)) return found;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!file.endsWith('.test.ts')) continue;
    for (const id of idsIn(readFileSync(join(folder, file), 'utf8'))) found.set(id, [...(found.get(id) ?? []), file]);
  }
  return found;
}
