import type { Command } from 'commander';
import type { Console } from '../console.js';
import { manualPage } from '../manual-page.js';

export function registerMan(program: Command, console: Console): void {
  program
    .command('man')
    .summary('print the manual page')
    .description('Prints bridle(1) as mdoc, made from the same commands as this help.')
    .addHelpText('after', '\nExamples:\n  bridle man | man -l -\n  bridle man > /usr/local/share/man/man1/bridle.1')
    .action(async () => {
      await console.stdout.write(manualPage(program));
    });
}
