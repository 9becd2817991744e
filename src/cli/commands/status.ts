import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { findMount } from '../client/find-mount.js';
import type { Console } from '../console.js';

export function registerStatus(program: Command, console: Console): void {
  program
    .command('status')
    .summary('show how the daemon is')
    .description('Prints the mount’s status file: health, versions, mount, runs.')
    .option('--json', 'print status.json')
    .addHelpText('after', '\nExamples:\n  bridle status\n  bridle status --json | jq .')
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<{ mount?: string; json?: true }>();
      const mount = await findMount(options.mount, console.env);
      await console.stdout.write(await readFile(join(mount, options.json ? 'status.json' : 'status'), 'utf8'));
    });
}
