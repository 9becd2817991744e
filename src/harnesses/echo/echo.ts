import { setImmediate as nextTick } from 'node:timers/promises';
import type { HarnessEvent } from '../../contract/events.js';
import type { ExecuteRequest, Harness, HarnessHealth, HarnessInfo } from '../../contract/harness.js';
import { type Cost, UNKNOWN_USAGE } from '../../contract/terminal.js';
import { piecesOf } from '../bounds.js';
import { refuseUnsupported } from '../support.js';

const INFO: HarnessInfo = {
  name: 'echo',
  kind: 'builtin',
  program: null,
  automatic: false,
  // It reads nothing and runs nothing, so every working directory and every permission mode is kept.
  supports: ['cwd', 'permissions'],
  promptBy: 'memory',
};

const UNKNOWN_COST: Cost = { usd: null, source: 'unknown' };
const CHUNKS = 4;

/**
 * Answers with the prompt. Deterministic, no process, no network: for trying the product and for tests. The prompt
 * `/history` is answered with the earlier user messages of the session, one a line.
 */
export class EchoHarness implements Harness {
  info(): HarnessInfo {
    return INFO;
  }

  async healthCheck(): Promise<HarnessHealth> {
    return { healthy: true, reason: null };
  }

  async *execute(request: ExecuteRequest): AsyncGenerator<HarnessEvent, void, undefined> {
    refuseUnsupported(request, INFO, ['safe', 'supervised', 'unrestricted']);
    const text = answer(request);
    const final = { type: 'final', text, model: null, usage: UNKNOWN_USAGE, cost: UNKNOWN_COST } as const;
    if (request.history.length > 0) {
      yield { type: 'notice', message: `${request.history.length} earlier messages in this session` };
    }
    for (const part of piecesOf(text, Math.max(1, Math.ceil(text.length / CHUNKS)))) {
      await nextTick();
      if (request.signal.aborted) break;
      yield { type: 'text', text: part };
    }
    yield { ...final, ok: !request.signal.aborted };
  }
}

function answer({ prompt, history }: ExecuteRequest): string {
  if (prompt !== '/history') return prompt;
  return history
    .filter((message) => message.role === 'user')
    .map((message) => message.content)
    .join('\n');
}
