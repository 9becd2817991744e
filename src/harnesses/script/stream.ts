import type { Cost, Usage } from '../../contract/terminal.js';
import { boundValue, MAX_FINAL_TEXT } from '../bounds.js';
import { type Conclusion, type LiveEvent, malformedEvent, type StreamMapper } from '../process-run.js';
import { costOf, liveEventOf, parseScriptLine, type ScriptFinal, usageOf } from './protocol.js';

/** Reads the lines of a script. Without a final line the exit status decides, and the text events are the text. */
export class ScriptStream implements StreamMapper {
  #text = '';
  #final: ScriptFinal | undefined;
  #usage: Usage | undefined;
  #cost: Cost | undefined;

  map(native: Readonly<Record<string, unknown>>): readonly LiveEvent[] {
    const line = parseScriptLine(native);
    if (line === undefined) return [malformedEvent(native)];
    if (this.#final !== undefined) {
      return [
        { type: 'notice', message: `a line of type ${line.type} after the final one`, native: boundValue(native) },
      ];
    }
    if (line.type === 'final') {
      this.#final = line;
      return [];
    }
    const event = liveEventOf(line);
    if (event.type === 'text') this.#keep(event.text);
    if (event.type === 'usage') {
      this.#usage = event.usage;
      this.#cost = event.cost;
    }
    return [event];
  }

  /** One character above the limit is kept, which makes the final text say that it was cut. */
  #keep(text: string): void {
    if (this.#text.length <= MAX_FINAL_TEXT) this.#text += text.slice(0, MAX_FINAL_TEXT + 1 - this.#text.length);
  }

  settled(): boolean {
    return this.#final !== undefined;
  }

  conclude(): Conclusion {
    const final = this.#final;
    return {
      ok: final?.ok ?? 'unknown',
      text: final?.text ?? this.#text,
      model: final?.model ?? null,
      usage: usageOf(final?.usage ?? this.#usage),
      cost: final?.cost === undefined ? (this.#cost ?? costOf(undefined)) : costOf(final.cost),
      failure: final !== undefined && !final.ok ? (final.message ?? 'the script reported a failure') : null,
    };
  }
}
