import type { Argument, Command, Option } from 'commander';
import { ERRORS } from '../contract/errors.js';

/** bridle(1) in mdoc, from the commands themselves. */
export function manualPage(program: Command): string {
  const help = program.createHelp();
  const commands = help.visibleCommands(program).filter((command) => command.name() !== 'help');
  return [
    '.Dd $Mdocdate$',
    '.Dt BRIDLE 1',
    '.Os',
    '.Sh NAME',
    '.Nm bridle',
    '.Nd every coding agent on this machine behind one mounted filesystem',
    '.Sh SYNOPSIS',
    '.Nm',
    '.Op Fl -mount Ar dir',
    '.Ar command',
    '.Op Ar argument ...',
    '.Sh DESCRIPTION',
    'A request is a file, a reply is a file, a conversation is a file that only grows.',
    'The daemon serves them on a mount; every other command is a client of that mount, as a shell script may be.',
    ...options(help.visibleOptions(program)),
    '.Sh COMMANDS',
    ...commands.flatMap((command) => commandText(command, command.name())),
    '.Sh ENVIRONMENT',
    ...list(
      [
        ['BRIDLE_MOUNT', 'mount, before the default place'],
        ['BRIDLE_STATE', 'state directory of the daemon'],
        ['BRIDLE_CONFIG', 'configuration file of the daemon'],
        ['BRIDLE_LOG', 'level of the daemon’s log'],
        ['NO_COLOR', 'no colours, whatever its value'],
      ].map(([name, meaning]) => [`Ev ${name}`, meaning ?? '']),
    ),
    '.Sh EXIT STATUS',
    'A command that did what it was asked exits 0.',
    '.Cm run',
    'exits 1 when the run failed, 124 when it timed out and 130 when it was cancelled.',
    'Errors have these codes:',
    ...list(Object.entries(ERRORS).map(([code, error]) => [`Er ${code}`, `${error.exit}. ${error.advice}`])),
    '',
  ]
    .filter((line, index, lines) => line !== '' || index === lines.length - 1)
    .join('\n');
}

function commandText(command: Command, path: string): string[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  const own = help.visibleOptions(command).filter((option) => option.long !== '--help');
  return [
    `.Ss ${roff(path)} ${command.registeredArguments.map(argumentText).join(' ')}`.trimEnd(),
    roff(command.description()),
    ...options(own),
    ...children.flatMap((child) => commandText(child, `${path} ${child.name()}`)),
  ];
}

function argumentText(argument: Argument): string {
  return argument.required ? `Ar ${argument.name()}` : `Op Ar ${argument.name()}`;
}

function options(all: readonly Option[]): string[] {
  return all.length === 0 ? [] : list(all.map((option) => [flagText(option), roff(option.description)]));
}

/** `-a, --agent <name>` as mdoc words. */
function flagText(option: Option): string {
  const value = /[<[](\S+)[>\]]/.exec(option.flags)?.[1];
  const flags = [option.short, option.long].filter((flag) => flag !== undefined && flag !== null);
  const words = flags.map((flag) => `Fl ${flag.slice(1)}`).join(' , ');
  return value === undefined ? words : `${words} Ar ${value}`;
}

function list(items: readonly (readonly string[])[]): string[] {
  return ['.Bl -tag -width Ds', ...items.flatMap(([tag, text]) => [`.It ${tag}`, roff(text ?? '')]), '.El'];
}

/** A line of text: nothing in it may be taken for a request or an escape. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('’', "'")
    .replace(/^([.'])/, '\\&$1');
}
