import { readFileSync } from 'node:fs';

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');

/** Version of this package, from package.json. */
export const version = (JSON.parse(manifest) as { version: string }).version;
