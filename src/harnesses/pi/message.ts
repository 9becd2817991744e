import { z } from 'zod';

const count = z.number().min(0).default(0);

const usageSchema = z.object({
  input: count,
  output: count,
  cacheRead: count,
  cacheWrite: count,
  cost: z.object({ total: count }).optional(),
});

const partSchema = z.object({ type: z.string(), text: z.string().optional() });

/** A message of pi's as it stands in message_end; only assistant messages carry usage and a stop reason. */
export const messageSchema = z.object({
  role: z.string(),
  content: z.union([z.string(), z.array(partSchema)]).default([]),
  provider: z.string().max(256).optional(),
  model: z.string().max(256).optional(),
  usage: usageSchema.optional(),
  stopReason: z.string().max(64).optional(),
  errorMessage: z.string().optional(),
});

export type PiMessage = z.infer<typeof messageSchema>;
export type PiUsage = z.infer<typeof usageSchema>;

const outputSchema = z.object({ content: z.array(partSchema).default([]) });

/** The text parts of a message or of a tool's result. */
export function textOf(content: PiMessage['content']): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('');
}

/** The text of a tool's result, whatever its shape. */
export function resultText(result: unknown): string {
  const parsed = outputSchema.safeParse(result);
  return parsed.success ? textOf(parsed.data.content) : '';
}
