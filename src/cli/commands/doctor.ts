import type { Command } from 'commander';
import type { Color } from '../color.js';
import type { Console } from '../console.js';
import { type CheckResult, runChecks } from '../doctor/check.js';
import { limitChecks } from '../doctor/limit-checks.js';
import { nativeChecks } from '../doctor/native-checks.js';
import { platformChecks } from '../doctor/platform-checks.js';
import type { Finish } from '../finish.js';

const COLORS: Record<CheckResult['status'], Color> = { ok: 'green', warning: 'yellow', failed: 'red' };
const EXIT_UNFIT = 1;

export function registerDoctor(program: Command, console: Console, finish: Finish): void {
  program
    .command('doctor')
    .summary('check this machine')
    .description('Checks what bridle needs on this machine, says what it means and which command corrects it.')
    .option('--json', 'print one JSON array')
    .addHelpText(
      'after',
      '\nExit code: 1 when something required is missing.\n\nExamples:\n  bridle doctor\n  bridle doctor --json | jq ".[] | select(.status != \\"ok\\")"',
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<{ mount?: string; json?: true }>();
      const { env } = console;
      // Loaded here: no other command needs the harnesses.
      const { daemonChecks } = await import('../doctor/daemon-checks.js');
      const checks = [...platformChecks(env), ...limitChecks(), ...nativeChecks(), ...daemonChecks(env, options.mount)];
      const results = await runChecks(checks);
      await console.stdout.write(options.json ? `${JSON.stringify(results, null, 2)}\n` : textOf(results, console));
      if (results.some((result) => result.status === 'failed')) finish(EXIT_UNFIT);
    });
}

function textOf(results: readonly CheckResult[], console: Console): string {
  const { paint } = console.stdout;
  const width = Math.max(...results.map((result) => result.code.length));
  return results
    .map(({ code, status, found, meaning, fix }) => {
      const lines = [`${paint(COLORS[status], status.padEnd(8))}${code.padEnd(width)}  ${found}`];
      if (meaning !== null) lines.push(`        ${meaning}`);
      if (fix !== null) lines.push(`        ${paint('bold', fix)}`);
      return `${lines.join('\n')}\n`;
    })
    .join('');
}
