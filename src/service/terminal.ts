import { type BridleError, type ErrorBody, toBridleError } from '../contract/errors.js';
import type { HarnessEvent } from '../contract/events.js';
import { type Cost, type Terminal, type Triple, UNKNOWN_USAGE, type Usage } from '../contract/terminal.js';

const UNKNOWN_COST: Cost = { usd: null, source: 'unknown' };

/** Why the service itself ended a run before its harness did. */
export type StopReason = 'timeout' | 'idle' | 'shutdown';

type Final = Extract<HarnessEvent, { type: 'final' }>;

/** What became of a run, as far as its harness can tell; cleanup may still turn it into `cleanup_failed`. */
export interface Evidence {
  readonly triple: Triple;
  readonly text: string;
  readonly usage: Usage;
  readonly cost: Cost;
  readonly error?: ErrorBody;
}

const DEADLINE: Triple = { outcome: 'timed_out', cause: 'deadline_exceeded', stage: 'timeout' };
const STOPPED: Record<StopReason, Triple> = {
  timeout: DEADLINE,
  idle: DEADLINE,
  shutdown: { outcome: 'cancelled', cause: 'context_cancelled', stage: 'cancellation' },
};

/** The table from a harness's last event to a terminal triple. A reason of ours comes before what the harness says. */
export function evidenceOfFinal(final: Final, stopped: StopReason | undefined): Evidence {
  const failed: Triple = { outcome: 'failed', cause: 'harness_failed', stage: 'harness' };
  const ended: Triple = final.ok ? { outcome: 'success', cause: 'completed', stage: 'harness' } : failed;
  const { text, usage, cost, error } = final;
  return { triple: stopped === undefined ? ended : STOPPED[stopped], text, usage, cost, ...(error && { error }) };
}

/** The table from what was thrown on the way to a terminal triple. */
export function evidenceOfError(thrown: unknown, stopped: StopReason | undefined): Evidence {
  const error = toBridleError(thrown);
  const triple = stopped === undefined ? tripleOfError(error) : STOPPED[stopped];
  return { triple, text: '', usage: UNKNOWN_USAGE, cost: UNKNOWN_COST, error: error.toBody() };
}

function tripleOfError(error: BridleError): Triple {
  switch (error.code) {
    case 'HARNESS_UNKNOWN':
    case 'HARNESS_UNAVAILABLE':
    case 'ROUTE_UNAVAILABLE':
    case 'UNSUPPORTED_FIELD':
      return { outcome: 'failed', cause: 'route_unavailable', stage: 'routing' };
    case 'SPAWN_FAILED':
    case 'PLATFORM_UNSUPPORTED':
      return { outcome: 'failed', cause: 'spawn_failed', stage: 'spawn' };
    default:
      return { outcome: 'failed', cause: 'internal_error', stage: 'harness' };
  }
}

/** What recovery says of a run that died with its daemon. */
export const CALLER_DIED: Evidence = {
  triple: { outcome: 'cancelled', cause: 'caller_died', stage: 'cancellation' },
  text: '',
  usage: UNKNOWN_USAGE,
  cost: UNKNOWN_COST,
};

/** The terminal fact: evidence, unless the boundary was not observed empty. */
export function terminalOf(evidence: Evidence, cleanup: { empty: boolean }, durationMs: number): Terminal {
  const { triple, text, usage, cost, error } = evidence;
  const rest = { text, usage, cost, durationMs, ...(error && { error }) };
  if (cleanup.empty) return { ...triple, ...rest };
  return { outcome: 'failed', cause: 'cleanup_failed', stage: 'cleanup', primary: triple, ...rest };
}
