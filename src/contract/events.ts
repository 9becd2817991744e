import type { ErrorBody } from './errors.js';
import type { RouteDecision } from './route.js';
import type { Cost, Terminal, Usage } from './terminal.js';

/**
 * Canonical events of a harness. `final` is evidence only: the service writes the terminal fact.
 * Exactly one `final` ends the stream.
 */
export type HarnessEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool.call'; readonly call: string; readonly name: string; readonly input: unknown }
  | {
      readonly type: 'tool.result';
      readonly call: string;
      readonly name: string;
      readonly ok: boolean;
      readonly output: string;
      readonly exitCode: number | null;
    }
  | { readonly type: 'usage'; readonly usage: Usage; readonly cost: Cost }
  | { readonly type: 'progress'; readonly message: string }
  /** Anything worth keeping that has no type of its own: unknown native events, noise on stdout, retries. */
  | { readonly type: 'notice'; readonly message: string; readonly native?: unknown }
  | {
      readonly type: 'final';
      readonly ok: boolean;
      readonly text: string;
      readonly model: string | null;
      readonly usage: Usage;
      readonly cost: Cost;
      readonly error?: ErrorBody;
    };

/** Rows of `events.jsonl` that the service writes itself. */
export type ServiceEvent =
  | { readonly type: 'run.accepted'; readonly request: string; readonly uid: number; readonly digest: string }
  | { readonly type: 'run.routed'; readonly route: RouteDecision }
  | { readonly type: 'run.started'; readonly harness: string }
  | { readonly type: 'run.terminal'; readonly terminal: Terminal };

export type EventBody = Exclude<HarnessEvent, { type: 'final' }> | ServiceEvent;

/** One row of `events.jsonl`. `seq` is gap-free per session and starts at 1. */
export type EventRow = { readonly seq: number; readonly ts: string; readonly run: string } & EventBody;

/** One row of `messages.jsonl`. `seq` is gap-free per session and starts at 1. */
export interface MessageRow {
  readonly seq: number;
  readonly ts: string;
  readonly run: string;
  readonly role: 'user' | 'assistant';
  readonly content: string;
}
