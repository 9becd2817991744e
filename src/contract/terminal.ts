import type { ErrorBody } from './errors.js';

export type Outcome = 'success' | 'failed' | 'cancelled' | 'timed_out';
export type Cause =
  | 'completed'
  | 'route_unavailable'
  | 'spawn_failed'
  | 'harness_failed'
  | 'deadline_exceeded'
  | 'context_cancelled'
  | 'caller_died'
  | 'cleanup_failed'
  | 'internal_error';
export type Stage = 'routing' | 'spawn' | 'harness' | 'timeout' | 'cancellation' | 'cleanup';

export interface Triple {
  readonly outcome: Outcome;
  readonly cause: Cause;
  readonly stage: Stage;
}

/** Token counts. A count that nobody reported is null, never 0. */
export interface Usage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
}

export const UNKNOWN_USAGE: Usage = {
  inputTokens: null,
  outputTokens: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
};

export interface Cost {
  /** US dollars, or null when nobody reported a figure. */
  readonly usd: number | null;
  readonly source: 'reported' | 'configured' | 'unknown';
}

/** The one terminal fact of a run: what `terminal.json` holds and what the last event row carries. */
export interface Terminal extends Triple {
  /** Present only when cause is cleanup_failed: what the run itself had come to. */
  readonly primary?: Triple;
  readonly text: string;
  readonly usage: Usage;
  readonly cost: Cost;
  readonly error?: ErrorBody;
  readonly durationMs: number;
}

/** `bridle.response/v1`: the content of `<id>.resp.json`. */
export interface Response extends Terminal {
  readonly schema: 'bridle.response/v1';
  readonly id: string;
  readonly agent: string;
  readonly session: string;
  readonly run: string;
  readonly harness: string | null;
  readonly model: string | null;
  readonly acceptedAt: string;
  readonly finishedAt: string;
  readonly metadata: Readonly<Record<string, string>>;
}
