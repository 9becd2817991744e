import { type Cost, UNKNOWN_USAGE, type Usage } from '../../contract/terminal.js';
import type { PiUsage } from './message.js';

/**
 * Adds up what pi reports message by message. pi writes zeros where it knows nothing, so a message of zeros counts as
 * unreported; it also counts cached input apart, which is put back so that input means the whole input here as with
 * every other harness.
 */
export class PiUsageSum {
  #reported = false;
  #input = 0;
  #output = 0;
  #cacheRead = 0;
  #cacheWrite = 0;
  #usd = 0;

  /** @returns whether the message reported anything */
  add(usage: PiUsage | undefined): boolean {
    if (usage === undefined) return false;
    const { input, output, cacheRead, cacheWrite, cost } = usage;
    if (input + output + cacheRead + cacheWrite === 0) return false;
    this.#reported = true;
    this.#input += input + cacheRead + cacheWrite;
    this.#output += output;
    this.#cacheRead += cacheRead;
    this.#cacheWrite += cacheWrite;
    this.#usd += cost?.total ?? 0;
    return true;
  }

  usage(): Usage {
    if (!this.#reported) return UNKNOWN_USAGE;
    return {
      inputTokens: this.#input,
      outputTokens: this.#output,
      cacheReadTokens: this.#cacheRead,
      cacheWriteTokens: this.#cacheWrite,
      reasoningTokens: null,
    };
  }

  /** pi multiplies tokens with the prices of its catalogue; a price of zero is how it says that it has none. */
  cost(): Cost {
    return this.#usd > 0 ? { usd: this.#usd, source: 'reported' } : { usd: null, source: 'unknown' };
  }
}
