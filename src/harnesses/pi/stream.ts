import { z } from 'zod';
import { boundValue, clipText, MAX_MESSAGE } from '../bounds.js';
import { type Conclusion, type LiveEvent, malformedEvent, type StreamMapper, unknownEvent } from '../process-run.js';
import { messageSchema, type PiMessage, resultText, textOf } from './message.js';
import { PiUsageSum } from './usage.js';

type Native = Readonly<Record<string, unknown>>;
type Handler = (native: Native) => readonly LiveEvent[];

const update = z.object({
  assistantMessageEvent: z.object({ type: z.string(), delta: z.string().optional() }),
});
const messageEnd = z.object({ message: messageSchema });
const toolStart = z.object({ toolCallId: z.string().max(256), toolName: z.string().max(256), args: z.unknown() });
const toolEnd = z.object({
  toolCallId: z.string().max(256),
  toolName: z.string().max(256),
  result: z.unknown(),
  isError: z.boolean().default(false),
});
const retryStart = z.object({
  attempt: z.number(),
  maxAttempts: z.number(),
  delayMs: z.number(),
  errorMessage: z.string().default(''),
});
const retryEnd = z.object({ success: z.boolean(), finalError: z.string().optional() });
const compaction = z.object({ reason: z.string().max(64).default('') });

const BAD_STOPS: readonly string[] = ['error', 'aborted'];

/**
 * Reads the events of `pi --mode json`. pi ends with status 0 on every failure of its provider, so the last assistant
 * message decides: a run is good when the agent came to its end and that message did not stop on an error.
 */
export class PiStream implements StreamMapper {
  readonly #usage = new PiUsageSum();
  readonly #handlers: ReadonlyMap<string, Handler>;
  #last: PiMessage | undefined;
  #ended = false;

  constructor() {
    const silent: Handler = () => [];
    this.#handlers = new Map<string, Handler>([
      ['session', silent],
      ['turn_start', silent],
      ['turn_end', silent],
      ['message_start', silent],
      ['tool_execution_update', silent],
      ['queue_update', silent],
      ['thinking_level_changed', silent],
      ['session_info_changed', silent],
      ['agent_start', () => this.#working([])],
      ['agent_end', () => this.#agentEnd()],
      ['message_update', checked(update, (event) => updateEvents(event.assistantMessageEvent))],
      ['message_end', checked(messageEnd, (event) => this.#messageEnd(event.message))],
      ['tool_execution_start', checked(toolStart, (event) => [callEvent(event)])],
      ['tool_execution_end', checked(toolEnd, (event) => [resultEvent(event)])],
      ['auto_retry_start', checked(retryStart, (event) => this.#working([retryNotice(event)]))],
      ['auto_retry_end', checked(retryEnd, retryEndEvents)],
      [
        'compaction_start',
        checked(compaction, (event) =>
          this.#working([{ type: 'progress', message: `compacting the conversation (${event.reason})` }]),
        ),
      ],
      ['compaction_end', checked(compaction, () => [{ type: 'progress', message: 'compaction ended' }])],
    ]);
  }

  map(native: Native): readonly LiveEvent[] {
    const type = native['type'];
    const handler = typeof type === 'string' ? this.#handlers.get(type) : undefined;
    return handler === undefined ? [unknownEvent(native)] : handler(native);
  }

  settled(): boolean {
    return this.#ended;
  }

  conclude(): Conclusion {
    const last = this.#last;
    const stoppedBadly = last?.stopReason !== undefined && BAD_STOPS.includes(last.stopReason);
    return {
      ok: this.#ended && last !== undefined && !stoppedBadly,
      text: last === undefined ? '' : textOf(last.content),
      model: modelOf(last),
      usage: this.#usage.usage(),
      cost: this.#usage.cost(),
      failure: stoppedBadly ? clipText(last.errorMessage ?? `stopped: ${last.stopReason}`, MAX_MESSAGE) : null,
    };
  }

  #working(events: readonly LiveEvent[]): readonly LiveEvent[] {
    this.#ended = false;
    return events;
  }

  #agentEnd(): readonly LiveEvent[] {
    this.#ended = true;
    return [];
  }

  #messageEnd(message: PiMessage): readonly LiveEvent[] {
    if (message.role !== 'assistant') return [];
    this.#last = message;
    const events: LiveEvent[] = [];
    if (this.#usage.add(message.usage)) {
      events.push({ type: 'usage', usage: this.#usage.usage(), cost: this.#usage.cost() });
    }
    if (message.stopReason === 'length') {
      events.push({ type: 'notice', message: 'the answer was cut off at the output limit of the model' });
    }
    return events;
  }
}

function checked<Schema extends z.ZodType>(
  schema: Schema,
  handle: (event: z.infer<Schema>) => readonly LiveEvent[],
): Handler {
  return (native) => {
    const parsed = schema.safeParse(native);
    return parsed.success ? handle(parsed.data) : [malformedEvent(native)];
  };
}

function modelOf(message: PiMessage | undefined): string | null {
  if (message?.model === undefined) return null;
  return message.provider === undefined ? message.model : `${message.provider}/${message.model}`;
}

function updateEvents(event: { type: string; delta?: string | undefined }): readonly LiveEvent[] {
  if (event.delta === undefined || event.delta === '') return [];
  if (event.type === 'text_delta') return [{ type: 'text', text: event.delta }];
  if (event.type === 'thinking_delta') return [{ type: 'reasoning', text: event.delta }];
  return [];
}

function callEvent(event: z.infer<typeof toolStart>): LiveEvent {
  return { type: 'tool.call', call: event.toolCallId, name: event.toolName, input: boundValue(event.args) };
}

function resultEvent(event: z.infer<typeof toolEnd>): LiveEvent {
  return {
    type: 'tool.result',
    call: event.toolCallId,
    name: event.toolName,
    ok: !event.isError,
    output: clipText(resultText(event.result)),
    exitCode: null,
  };
}

function retryNotice(event: z.infer<typeof retryStart>): LiveEvent {
  const { attempt, maxAttempts, delayMs, errorMessage } = event;
  const message = `retry ${attempt} of ${maxAttempts} in ${delayMs} ms: ${clipText(errorMessage, MAX_MESSAGE)}`;
  return { type: 'notice', message };
}

function retryEndEvents(event: z.infer<typeof retryEnd>): readonly LiveEvent[] {
  if (event.success) return [];
  return [{ type: 'notice', message: `no more retries: ${clipText(event.finalError ?? '', MAX_MESSAGE)}` }];
}
