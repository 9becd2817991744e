import { join } from 'node:path';
import type { ExecuteRequest } from '../../contract/harness.js';

/** Variables that codex reads for its login and its place, besides the common ones. */
export const CODEX_ENV: readonly string[] = [
  'CODEX_HOME',
  'CODEX_API_KEY',
  'CODEX_CA_CERTIFICATE',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'OPENAI_ORGANIZATION',
  'OPENAI_PROJECT',
];

/** Modes that codex itself can enforce without somebody to ask. */
export const CODEX_PERMISSIONS = ['safe', 'unrestricted'] as const;

const EFFORT = { off: 'none', low: 'low', medium: 'medium', high: 'high' } as const;

/** Where the system text of a run lies, inside its scratch directory. */
export function systemFile(scratch: string): string {
  return join(scratch, 'codex-instructions.md');
}

/**
 * The argument list: no prompt, no system text, no secret. The prompt is read from stdin (`-`).
 * @param program absolute path of the executable
 */
export function codexArguments(program: string, request: ExecuteRequest): [string, ...string[]] {
  const { model, reasoning, system, cwd, scratch, permissions } = request;
  const config: string[] = [];
  if (reasoning !== null) config.push(`model_reasoning_effort=${tomlString(EFFORT[reasoning])}`);
  if (system !== null) config.push(`model_instructions_file=${tomlString(systemFile(scratch))}`);
  return [
    program,
    'exec',
    '--json',
    '--ephemeral',
    '--skip-git-repo-check',
    '--color=never',
    ...(permissions === 'unrestricted' ? ['--dangerously-bypass-approvals-and-sandbox'] : ['--sandbox=read-only']),
    `--cd=${cwd}`,
    ...(model === null ? [] : [`--model=${model}`]),
    ...config.flatMap((pair) => ['-c', pair]),
    '-',
  ];
}

/** JSON's escapes are a subset of those of a TOML basic string. */
function tomlString(value: string): string {
  return JSON.stringify(value);
}
