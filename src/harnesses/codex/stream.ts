import { z } from 'zod';
import { type Cost, UNKNOWN_USAGE, type Usage } from '../../contract/terminal.js';
import { clipText, MAX_MESSAGE } from '../bounds.js';
import { type Conclusion, type LiveEvent, malformedEvent, type StreamMapper, unknownEvent } from '../process-run.js';
import { type CodexItem, callEvent, isTool, itemSchema, resultEvent, saidEvent } from './items.js';

type Native = Readonly<Record<string, unknown>>;

const count = z.number().int().min(0).nullish();
const usageSchema = z.object({
  input_tokens: count,
  cached_input_tokens: count,
  cache_write_input_tokens: count,
  output_tokens: count,
  reasoning_output_tokens: count,
});
const turnCompleted = z.object({ usage: usageSchema.nullish() });
const turnFailed = z.object({ error: z.object({ message: z.string() }) });
const errorLine = z.object({ message: z.string() });
const typedItem = z.object({ type: z.string() });

/** codex reports tokens, never money. */
const NO_COST: Cost = { usd: null, source: 'unknown' };

/**
 * Reads the events of `codex exec --json`. Only `turn.completed` makes a run good and only `turn.failed`, or the lack
 * of both, makes it bad: error items and error lines also occur in good runs.
 */
export class CodexStream implements StreamMapper {
  readonly #model: string | null;
  readonly #openCalls = new Set<string>();
  #text = '';
  #usage: Usage = UNKNOWN_USAGE;
  #completed = false;
  #failure: string | null = null;
  #lastError: string | null = null;

  /** @param model the model that was asked for; the stream does not name the one that answered */
  constructor(model: string | null) {
    this.#model = model;
  }

  map(native: Native): readonly LiveEvent[] {
    switch (native['type']) {
      case 'thread.started':
        return [];
      case 'turn.started':
        this.#completed = false;
        this.#failure = null;
        return [];
      case 'turn.completed':
        return this.#turnCompleted(native);
      case 'turn.failed':
        return this.#turnFailed(native);
      case 'error':
        return this.#errorLine(native);
      case 'item.started':
      case 'item.updated':
      case 'item.completed':
        return this.#item(native['type'], native);
      default:
        return [unknownEvent(native)];
    }
  }

  settled(): boolean {
    return this.#completed || this.#failure !== null;
  }

  conclude(): Conclusion {
    return {
      ok: this.#completed,
      text: this.#text,
      model: this.#model,
      usage: this.#usage,
      cost: NO_COST,
      failure: this.#completed ? null : (this.#failure ?? this.#lastError),
    };
  }

  #turnCompleted(native: Native): readonly LiveEvent[] {
    this.#completed = true;
    this.#failure = null;
    const parsed = turnCompleted.safeParse(native);
    if (!parsed.success) return [malformedEvent(native)];
    const { usage } = parsed.data;
    if (usage == null) return [];
    this.#usage = {
      inputTokens: usage.input_tokens ?? null,
      outputTokens: usage.output_tokens ?? null,
      cacheReadTokens: usage.cached_input_tokens ?? null,
      cacheWriteTokens: usage.cache_write_input_tokens ?? null,
      reasoningTokens: usage.reasoning_output_tokens ?? null,
    };
    return [{ type: 'usage', usage: this.#usage, cost: NO_COST }];
  }

  #turnFailed(native: Native): readonly LiveEvent[] {
    const parsed = turnFailed.safeParse(native);
    this.#completed = false;
    this.#failure = parsed.success
      ? clipText(parsed.data.error.message, MAX_MESSAGE)
      : (this.#lastError ?? 'the turn failed and codex did not say why');
    return parsed.success ? [] : [malformedEvent(native)];
  }

  #errorLine(native: Native): readonly LiveEvent[] {
    const parsed = errorLine.safeParse(native);
    if (!parsed.success) return [malformedEvent(native)];
    this.#lastError = clipText(parsed.data.message, MAX_MESSAGE);
    return [{ type: 'notice', message: this.#lastError }];
  }

  #item(stage: 'item.started' | 'item.updated' | 'item.completed', native: Native): readonly LiveEvent[] {
    const item = itemSchema.safeParse(native['item']);
    if (!item.success) return [ofKnownType(native['item']) ? malformedEvent(native) : unknownEvent(native)];
    return isTool(item.data) ? this.#tool(stage, item.data) : this.#said(stage, item.data);
  }

  #tool(stage: string, item: Parameters<typeof callEvent>[0]): readonly LiveEvent[] {
    const events: LiveEvent[] = [];
    if (!this.#openCalls.has(item.id)) {
      this.#openCalls.add(item.id);
      events.push(callEvent(item));
    }
    if (stage === 'item.completed') {
      this.#openCalls.delete(item.id);
      events.push(resultEvent(item));
    }
    return events;
  }

  #said(stage: string, item: Exclude<CodexItem, Parameters<typeof callEvent>[0]>): readonly LiveEvent[] {
    // A plan is shown each time it changes; a text only when it is whole.
    if (stage !== 'item.completed' && item.type !== 'todo_list') return [];
    if (item.type === 'agent_message') this.#text = item.text;
    return [saidEvent(item)];
  }
}

/** Whether an item that does not match is a known type of the wrong shape; no item at all is the wrong shape too. */
function ofKnownType(item: unknown): boolean {
  const { data } = typedItem.safeParse(item);
  return data === undefined || itemSchema.options.some((option) => option.shape.type.value === data.type);
}
