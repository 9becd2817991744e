import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A command by its words, `sessions tail`, with what may follow it. */
interface Node {
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly { readonly flags: readonly string[]; readonly summary: string }[];
  readonly choices: readonly string[];
}

/** A completion script made from the commands themselves, so that it cannot lack one. */
export function completionScript(shell: Shell, program: Command): string {
  const nodes = collect(program, []);
  return { bash, zsh, fish }[shell](nodes);
}

function collect(command: Command, path: readonly string[]): Node[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  const globals = path.length === 0 ? [] : help.visibleGlobalOptions(command);
  const node: Node = {
    path: path.join(' '),
    commands: commands.map((child) => ({ name: child.name(), summary: child.summary() || child.description() })),
    options: [...help.visibleOptions(command), ...globals].map((option) => ({
      flags: [option.short, option.long].filter((flag): flag is string => flag !== undefined && flag !== null),
      summary: option.description,
    })),
    choices: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
  };
  return [node, ...commands.flatMap((child) => collect(child, [...path, child.name()]))];
}

function wordsOf(node: Node): string {
  return [
    ...node.commands.map((child) => child.name),
    ...node.options.flatMap((option) => option.flags),
    ...node.choices,
  ].join(' ');
}

function bash(nodes: readonly Node[]): string {
  return `# bash completion for bridle
_bridle() {
  local current=\${COMP_WORDS[COMP_CWORD]} path='' word words
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
${nodes
  .filter((node) => node.path !== '')
  .map((node) => `      '${node.path.includes(' ') ? node.path : ` ${node.path}`}') path='${node.path}' ;;`)
  .join('\n')}
    esac
  done
  case "$path" in
${nodes.map((node) => `    '${node.path}') words='${wordsOf(node)}' ;;`).join('\n')}
  esac
  COMPREPLY=()
  while IFS='' read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}
complete -o default -F _bridle bridle
`;
}

function zsh(nodes: readonly Node[]): string {
  const entries = (node: Node): string =>
    [
      ...node.commands.map((child) => [child.name, child.summary] as const),
      ...node.options.flatMap((option) => option.flags.map((flag) => [flag, option.summary] as const)),
      ...node.choices.map((choice) => [choice, ''] as const),
    ]
      .map(([word, summary]) => `'${quote(`${word}:${summary}`)}'`)
      .join(' ');
  return `#compdef bridle
_bridle() {
  local path_='' word
  local -a entries
  for word in \${words[2,CURRENT-1]}; do
    case "$path_ $word" in
${nodes
  .filter((node) => node.path !== '')
  .map((node) => `      '${node.path.includes(' ') ? node.path : ` ${node.path}`}') path_='${node.path}' ;;`)
  .join('\n')}
    esac
  done
  case "$path_" in
${nodes.map((node) => `    '${node.path}') entries=(${entries(node)}) ;;`).join('\n')}
  esac
  _describe 'bridle' entries || _files
}
if [ "$funcstack[1]" = _bridle ]; then _bridle "$@"; else compdef _bridle bridle; fi
`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap((node) => {
    const words = node.path.split(' ').filter((word) => word !== '');
    const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`);
    const children = node.commands.map((child) => child.name).join(' ');
    const unseen = children === '' ? [] : [`not __fish_seen_subcommand_from ${children}`];
    const commandCondition = [...seen, ...unseen].join('; and ');
    const optionCondition = seen.length === 0 ? '' : ` -n '${seen.join('; and ')}'`;
    return [
      ...node.commands.map(
        (child) => `complete -c bridle -f -n '${commandCondition}' -a ${child.name} -d '${quote(child.summary)}'`,
      ),
      ...node.choices.map((choice) => `complete -c bridle -f${optionCondition} -a ${choice}`),
      ...node.options.map(
        (option) => `complete -c bridle${optionCondition} ${fishFlags(option.flags)} -d '${quote(option.summary)}'`,
      ),
    ];
  });
  return `# fish completion for bridle\n${lines.join('\n')}\n`;
}

function fishFlags(flags: readonly string[]): string {
  return flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');
}

/** Inside single quotes of zsh and fish; fish takes the same sequence as two strings side by side. */
function quote(text: string): string {
  return text.replaceAll("'", "'\\''");
}
