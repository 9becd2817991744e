import { z } from 'zod';
import type { ExecuteRequest } from '../../contract/harness.js';
import { type Cost, UNKNOWN_USAGE, type Usage } from '../../contract/terminal.js';
import { boundValue, clipText, MAX_MESSAGE } from '../bounds.js';
import type { LiveEvent } from '../process-run.js';

const label = z.string().min(1).max(256);
const count = z.number().int().min(0).nullable().default(null);
const usageSchema = z.strictObject({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
});
const costSchema = z.strictObject({ usd: z.number().min(0) });

/** `bridle.script/v1`: what a script may print, one JSON object a line. Everything else becomes a notice. */
const lineSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('reasoning'), text: z.string() }),
  z.strictObject({ type: z.literal('tool.call'), call: label, name: label, input: z.unknown() }),
  z.strictObject({
    type: z.literal('tool.result'),
    call: label,
    name: label,
    ok: z.boolean(),
    output: z.string(),
    exitCode: z.number().int().nullable().default(null),
  }),
  z.strictObject({ type: z.literal('usage'), usage: usageSchema, cost: costSchema.optional() }),
  z.strictObject({ type: z.literal('progress'), message: z.string() }),
  z.strictObject({ type: z.literal('notice'), message: z.string(), native: z.unknown().optional() }),
  z.strictObject({
    type: z.literal('final'),
    ok: z.boolean(),
    text: z.string().optional(),
    model: z.string().max(256).nullable().default(null),
    usage: usageSchema.optional(),
    cost: costSchema.optional(),
    message: z.string().max(4096).optional(),
  }),
]);

export type ScriptLine = z.infer<typeof lineSchema>;
export type ScriptFinal = Extract<ScriptLine, { type: 'final' }>;

/** @returns undefined when the line is not one of the protocol */
export function parseScriptLine(native: unknown): ScriptLine | undefined {
  return lineSchema.safeParse(native).data;
}

/** The canonical event of a line that is not the final one. */
export function liveEventOf(line: Exclude<ScriptLine, ScriptFinal>): LiveEvent {
  switch (line.type) {
    case 'usage':
      return { type: 'usage', usage: line.usage, cost: costOf(line.cost) };
    case 'tool.call':
      return { ...line, input: boundValue(line.input) };
    case 'tool.result':
      return { ...line, output: clipText(line.output) };
    case 'progress':
      return { type: 'progress', message: clipText(line.message, MAX_MESSAGE) };
    case 'notice': {
      const message = clipText(line.message, MAX_MESSAGE);
      return line.native === undefined
        ? { type: 'notice', message }
        : { type: 'notice', message, native: boundValue(line.native) };
    }
    default:
      return line;
  }
}

export function costOf(cost: { usd: number } | undefined): Cost {
  return cost === undefined ? { usd: null, source: 'unknown' } : { usd: cost.usd, source: 'reported' };
}

export function usageOf(usage: Usage | undefined): Usage {
  return usage ?? UNKNOWN_USAGE;
}

/** The one line of input, `bridle.script/v1`: the request without what only the daemon can use. */
export function inputLine(request: ExecuteRequest): string {
  const { launcher: _launcher, signal: _signal, ...input } = request;
  return `${JSON.stringify({ schema: 'bridle.script/v1', ...input })}\n`;
}
