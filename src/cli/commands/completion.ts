import { Argument, type Command } from 'commander';
import { completionScript, SHELLS, type Shell } from '../completion-script.js';
import type { Console } from '../console.js';

export function registerCompletion(program: Command, console: Console): void {
  program
    .command('completion')
    .summary('print a completion script for a shell')
    .description('Prints a script that completes commands and options of bridle.')
    .addArgument(new Argument('<shell>', 'shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  bridle completion bash > ~/.local/share/bash-completion/completions/bridle
  bridle completion zsh > ~/.zfunc/_bridle
  bridle completion fish > ~/.config/fish/completions/bridle.fish`,
    )
    .action(async (shell: Shell) => {
      await console.stdout.write(completionScript(shell, program));
    });
}
