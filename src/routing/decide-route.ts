import { BridleError } from '../contract/errors.js';
import type { Harness } from '../contract/harness.js';
import type { RouteCandidate, RouteDecision } from '../contract/route.js';

export interface RouteInput {
  /** The request's pin. */
  readonly pin: string | undefined;
  /** The agent's `harness` control; empty when the agent leaves the choice open. */
  readonly agentHarness: string;
  readonly model: string | null;
}

/**
 * Chooses the harness of a run: the request's pin, else the agent's harness, else the first healthy one of those that
 * may be chosen automatically, in registry order. A pinned harness that is not healthy is an error and never replaced
 * by another.
 *
 * @throws BridleError HARNESS_UNKNOWN, HARNESS_UNAVAILABLE or ROUTE_UNAVAILABLE; the message says why
 */
export async function decideRoute(input: RouteInput, harnesses: ReadonlyMap<string, Harness>): Promise<RouteDecision> {
  const pinned = input.pin ?? input.agentHarness;
  if (pinned !== '') {
    const harness = harnesses.get(pinned);
    if (harness === undefined) {
      throw new BridleError('HARNESS_UNKNOWN', `there is no harness "${pinned}"`, { path: 'harness' });
    }
    const health = await harness.healthCheck();
    if (!health.healthy) {
      throw new BridleError('HARNESS_UNAVAILABLE', `harness "${pinned}": ${health.reason ?? 'not healthy'}`);
    }
    const reason = input.pin === undefined ? 'agent' : 'request';
    return decision(pinned, input.model, reason, [{ harness: pinned, eligible: true, filter: null }]);
  }

  const candidates: RouteCandidate[] = [];
  for (const [name, harness] of harnesses) {
    if (!harness.info().automatic) {
      candidates.push({ harness: name, eligible: false, filter: 'only by name' });
      continue;
    }
    const health = await harness.healthCheck();
    if (health.healthy) {
      candidates.push({ harness: name, eligible: true, filter: null });
      return decision(name, input.model, 'first-healthy', candidates);
    }
    candidates.push({ harness: name, eligible: false, filter: health.reason ?? 'not healthy' });
  }
  const tried = candidates.map((candidate) => `${candidate.harness} (${candidate.filter ?? ''})`).join(', ');
  throw new BridleError('ROUTE_UNAVAILABLE', `no harness can take this request: ${tried}`);
}

function decision(
  harness: string,
  model: string | null,
  reason: RouteDecision['reason'],
  candidates: readonly RouteCandidate[],
): RouteDecision {
  return { harness, provider: null, endpoint: null, serverInstance: null, model, reason, candidates };
}
