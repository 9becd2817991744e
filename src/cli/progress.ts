import type { Output } from './console.js';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const;
const FRAME_MS = 100;

/** One line at the bottom of a terminal that says that something goes on, and for how long. Silent elsewhere. */
export class Progress implements Disposable {
  readonly #output: Output;
  readonly #started = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #label: string;
  #frame = 0;
  #shown = false;
  #held = false;

  constructor(output: Output, label: string) {
    this.#output = output;
    this.#label = label;
    if (output.isTerminal) this.#timer = setInterval(() => this.#draw(), FRAME_MS).unref();
  }

  set label(text: string) {
    this.#label = text;
  }

  /** Takes the line away so that text can be written; `atLineStart` tells where that text will end. */
  yieldTo(atLineStart: boolean): void {
    this.#clear();
    this.#held = !atLineStart;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#clear();
  }

  #clear(): void {
    if (this.#shown) void this.#output.write('\r\u001b[K');
    this.#shown = false;
  }

  #draw(): void {
    if (this.#held) return;
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const seconds = Math.floor((performance.now() - this.#started) / 1000);
    const line = `${FRAMES[this.#frame]} ${seconds}s  ${this.#label}`.slice(0, this.#output.columns - 1);
    void this.#output.write(`\r\u001b[K${this.#output.paint('dim', line)}`);
    this.#shown = true;
  }
}
