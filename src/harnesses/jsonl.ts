/** A line longer than this is dropped and reported by its size. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** What is kept of a line that is not a JSON object. */
const MAX_NOISE_CHARS = 512;

export type Line =
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>> }
  /** Text that is not a JSON object; at most 512 characters of it. */
  | { readonly kind: 'noise'; readonly text: string }
  /** A line above the limit; nothing of it was kept. */
  | { readonly kind: 'oversize'; readonly bytes: number };

const LF = 0x0a;

/**
 * Splits a byte stream into JSON lines. Chunks may end anywhere, also inside a UTF-8 sequence; CRLF, blank lines and a
 * last line without a newline are fine. Memory is bounded by the line limit plus one chunk.
 */
export class JsonLines {
  readonly #maxLineBytes: number;
  readonly #clean: (text: string) => string;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #oversize = false;

  /** @param options.clean applied to the text of every line before it is parsed */
  constructor(options: { maxLineBytes?: number; clean?: (text: string) => string } = {}) {
    this.#maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
    this.#clean = options.clean ?? ((text) => text);
  }

  /** Lines that this chunk completes. Take all of them before the next push. */
  *push(chunk: Uint8Array): Generator<Line> {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#hold(chunk.subarray(start, end));
      start = end + 1;
      const line = this.#take();
      if (line !== undefined) yield line;
    }
    this.#hold(chunk.subarray(start));
  }

  /** The last line, when the stream ended without a newline. */
  *end(): Generator<Line> {
    const line = this.#take();
    if (line !== undefined) yield line;
  }

  #hold(part: Uint8Array): void {
    this.#heldBytes += part.length;
    if (this.#oversize || part.length === 0) return;
    if (this.#heldBytes > this.#maxLineBytes) {
      this.#oversize = true;
      this.#held = [];
      return;
    }
    this.#held.push(part);
  }

  #take(): Line | undefined {
    const bytes = this.#heldBytes;
    const parts = this.#held;
    const oversize = this.#oversize;
    this.#held = [];
    this.#heldBytes = 0;
    this.#oversize = false;
    if (oversize) return { kind: 'oversize', bytes };
    if (bytes === 0) return undefined;
    const [first] = parts;
    const whole = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
    return parseLine(this.#clean(Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString('utf8')));
  }
}

function parseLine(text: string): Line | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  if (trimmed.startsWith('{')) {
    try {
      return { kind: 'object', value: JSON.parse(trimmed) as Record<string, unknown> };
    } catch (cause) {
      // RangeError: nested too deeply for the parser, which is noise like any other syntax error.
      if (!(cause instanceof SyntaxError || cause instanceof RangeError)) throw cause;
    }
  }
  return { kind: 'noise', text: trimmed.slice(0, MAX_NOISE_CHARS) };
}
