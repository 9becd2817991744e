import { z } from 'zod';
import { boundValue, clipText, MAX_MESSAGE } from '../bounds.js';
import type { LiveEvent } from '../process-run.js';

const base = { id: z.string().max(256) };

/** Items that codex reports as started, updated and completed; other types are kept as notices. */
export const itemSchema = z.discriminatedUnion('type', [
  z.object({ ...base, type: z.literal('agent_message'), text: z.string() }),
  z.object({ ...base, type: z.literal('reasoning'), text: z.string() }),
  z.object({
    ...base,
    type: z.literal('command_execution'),
    command: z.string(),
    aggregated_output: z.string().default(''),
    exit_code: z.number().int().nullish(),
    status: z.string().default(''),
  }),
  z.object({ ...base, type: z.literal('file_change'), changes: z.unknown(), status: z.string().default('') }),
  z.object({
    ...base,
    type: z.literal('mcp_tool_call'),
    server: z.string(),
    tool: z.string(),
    arguments: z.unknown(),
    result: z.unknown().optional(),
    error: z.object({ message: z.string() }).nullish(),
    status: z.string().default(''),
  }),
  z.object({ ...base, type: z.literal('web_search'), query: z.string().default('') }),
  z.object({
    ...base,
    type: z.literal('todo_list'),
    items: z.array(z.object({ text: z.string(), completed: z.boolean() })),
  }),
  z.object({ ...base, type: z.literal('error'), message: z.string() }),
]);

export type CodexItem = z.infer<typeof itemSchema>;
type ToolItem = Extract<CodexItem, { type: 'command_execution' | 'file_change' | 'mcp_tool_call' | 'web_search' }>;
type SaidItem = Exclude<CodexItem, ToolItem>;

export function isTool(item: CodexItem): item is ToolItem {
  return ['command_execution', 'file_change', 'mcp_tool_call', 'web_search'].includes(item.type);
}

function toolOf(item: ToolItem): { name: string; input: unknown } {
  switch (item.type) {
    case 'command_execution':
      return { name: 'shell', input: { command: item.command } };
    case 'file_change':
      return { name: 'apply_patch', input: { changes: item.changes } };
    case 'mcp_tool_call':
      return { name: `${item.server}.${item.tool}`, input: item.arguments };
    case 'web_search':
      return { name: 'web_search', input: { query: item.query } };
  }
}

function outputOf(item: ToolItem): string {
  if (item.type === 'command_execution') return item.aggregated_output;
  if (item.type !== 'mcp_tool_call') return '';
  if (item.error != null) return item.error.message;
  return item.result == null ? '' : JSON.stringify(boundValue(item.result));
}

export function callEvent(item: ToolItem): LiveEvent {
  const { name, input } = toolOf(item);
  return { type: 'tool.call', call: item.id, name, input: boundValue(input) };
}

export function resultEvent(item: ToolItem): LiveEvent {
  const exitCode = item.type === 'command_execution' ? (item.exit_code ?? null) : null;
  const completed = item.type === 'web_search' || item.status === 'completed';
  return {
    type: 'tool.result',
    call: item.id,
    name: toolOf(item).name,
    ok: completed && (exitCode ?? 0) === 0,
    output: clipText(outputOf(item)),
    exitCode,
  };
}

/** The event of a completed item that is no tool. */
export function saidEvent(item: SaidItem): LiveEvent {
  switch (item.type) {
    case 'agent_message':
      return { type: 'text', text: item.text };
    case 'reasoning':
      return { type: 'reasoning', text: item.text };
    case 'todo_list':
      return { type: 'progress', message: planOf(item.items) };
    case 'error':
      return { type: 'notice', message: clipText(item.message, MAX_MESSAGE) };
  }
}

function planOf(items: readonly { text: string; completed: boolean }[]): string {
  return clipText(items.map(({ text, completed }) => `[${completed ? 'x' : ' '}] ${text}`).join('\n'), MAX_MESSAGE);
}
