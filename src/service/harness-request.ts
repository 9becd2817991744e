import { BridleError } from '../contract/errors.js';
import type { ExecuteRequest, HarnessField, HarnessInfo } from '../contract/harness.js';
import type { Request } from '../contract/request.js';
import type { Agent } from './agents.js';

/** The part of an execute request that comes from the request file and the agent's controls. */
export type HarnessWishes = Pick<
  ExecuteRequest,
  'prompt' | 'system' | 'model' | 'permissions' | 'reasoning' | 'temperature' | 'seed'
>;

/**
 * What the harness is asked to do. A field that is set, by the request or by the agent, and that the harness cannot
 * honour is refused: nothing is ignored in silence.
 *
 * @throws BridleError UNSUPPORTED_FIELD naming field and harness
 */
export function harnessWishes(request: Request, agent: Agent, info: HarnessInfo): HarnessWishes {
  const system = request.system ?? (agent.controls['system.md'] || null);
  const model = request.model ?? (agent.controls.model || null);
  const { cwd, permissions, reasoning, temperature, seed } = request;
  const set: Record<HarnessField, unknown> = {
    model,
    system,
    cwd,
    permissions,
    reasoning,
    temperature,
    seed,
  };
  for (const [field, value] of Object.entries(set) as [HarnessField, unknown][]) {
    if (value !== undefined && value !== null && !info.supports.includes(field)) {
      throw new BridleError('UNSUPPORTED_FIELD', `harness "${info.name}" cannot honour "${field}"`, { path: field });
    }
  }
  return {
    prompt: request.prompt,
    system,
    model,
    permissions: permissions ?? 'safe',
    reasoning: reasoning ?? null,
    temperature: temperature ?? null,
    seed: seed ?? null,
  };
}
