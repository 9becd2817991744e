import { createRequire } from 'node:module';

/** Version of this package, from package.json. */
export const version = (createRequire(import.meta.url)('../../package.json') as { version: string }).version;
