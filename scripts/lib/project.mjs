import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of the project's root. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** @param {...string} parts path below the root */
export const inRoot = (...parts) => join(root, ...parts);

/** Where a test run leaves its raw results, logs and evidence. */
export const evidenceDir = process.env['BRIDLE_EVIDENCE_DIR'] ?? inRoot('build', 'evidence');

/** A condition the user must change; its message says what to do. Printed without a stack. */
export class SetupError extends Error {}
