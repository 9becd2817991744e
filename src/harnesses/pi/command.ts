import { join } from 'node:path';
import type { ExecuteRequest } from '../../contract/harness.js';

/** Variables that pi reads for its providers and its place, besides the common ones. */
export const PI_ENV: readonly string[] = [
  'PI_CODING_AGENT_DIR',
  'PI_PACKAGE_DIR',
  'PI_OFFLINE',
  'PI_TELEMETRY',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_OAUTH_TOKEN',
  'OPENAI_API_KEY',
  'AZURE_OPENAI_API_KEY',
  'AZURE_OPENAI_BASE_URL',
  'AZURE_OPENAI_RESOURCE_NAME',
  'AZURE_OPENAI_API_VERSION',
  'AZURE_OPENAI_DEPLOYMENT_NAME_MAP',
  'DEEPSEEK_API_KEY',
  'GEMINI_API_KEY',
  'GROQ_API_KEY',
  'CEREBRAS_API_KEY',
  'XAI_API_KEY',
  'FIREWORKS_API_KEY',
  'OPENROUTER_API_KEY',
  'AI_GATEWAY_API_KEY',
  'ZAI_API_KEY',
  'MISTRAL_API_KEY',
  'MINIMAX_API_KEY',
  'MOONSHOT_API_KEY',
  'OPENCODE_API_KEY',
  'KIMI_API_KEY',
  'CLOUDFLARE_API_KEY',
  'CLOUDFLARE_ACCOUNT_ID',
  'CLOUDFLARE_GATEWAY_ID',
  'AWS_PROFILE',
  'AWS_REGION',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_BEARER_TOKEN_BEDROCK',
];

/** pi asks nobody: it either has its writing tools or it does not. */
export const PI_PERMISSIONS = ['safe', 'unrestricted'] as const;

const READING_TOOLS = 'read,grep,find,ls';

/** Where the system text of a run lies, inside its scratch directory. */
export function systemFile(scratch: string): string {
  return join(scratch, 'pi-instructions.md');
}

/**
 * The argument list: no prompt, no system text, no secret. The prompt is read from stdin.
 * @param program absolute path of the executable
 */
export function piArguments(program: string, request: ExecuteRequest): [string, ...string[]] {
  const { model, reasoning, system, scratch, permissions } = request;
  return [
    program,
    '--mode',
    'json',
    '--no-session',
    // Extensions are code of the user's or of the workspace: in safe mode none of it is loaded.
    ...(permissions === 'safe' ? ['--tools', READING_TOOLS, '--no-extensions'] : []),
    ...(model === null ? [] : ['--model', model]),
    ...(reasoning === null ? [] : ['--thinking', reasoning]),
    ...(system === null ? [] : ['--append-system-prompt', systemFile(scratch)]),
    '--print',
  ];
}
