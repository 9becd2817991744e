import type { EventRow } from '../contract/events.js';
import type { Outcome, Response } from '../contract/terminal.js';
import { printable } from './color.js';
import type { Console } from './console.js';
import { Progress } from './progress.js';

/** Shows one run: its text on standard output as it comes, what goes on and how it ended on standard error. */
export class RunView implements Disposable {
  readonly #console: Console;
  readonly #progress: Progress;
  #wroteText = false;
  #atLineStart = true;

  constructor(console: Console) {
    this.#console = console;
    this.#progress = new Progress(console.stderr, 'accepted');
  }

  async event(row: EventRow): Promise<void> {
    if (row.type === 'text') return await this.#text(row.text);
    if (!this.#atLineStart) await this.#text('\n');
    if (row.type === 'run.routed') this.#progress.label = row.route.harness;
    else if (row.type === 'tool.call') this.#progress.label = `tool ${row.name}`;
    else if (row.type === 'progress') this.#progress.label = printable(row.message);
  }

  async end(response: Response): Promise<void> {
    if (!this.#wroteText && response.text !== '') await this.#text(response.text);
    if (!this.#atLineStart) await this.#text('\n');
    this.#progress.yieldTo(true);
    await this.#console.stderr.write(this.#verdict(response));
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]();
  }

  async #text(text: string): Promise<void> {
    const shown = this.#console.stdout.isTerminal ? printable(text) : text;
    if (shown === '') return;
    this.#wroteText = true;
    this.#atLineStart = shown.endsWith('\n');
    this.#progress.yieldTo(this.#atLineStart);
    await this.#console.stdout.write(shown);
  }

  #verdict(response: Response): string {
    const { paint, isTerminal } = this.#console.stderr;
    if (response.outcome === 'success') {
      // In a pipe success is silence, as everywhere.
      if (!isTerminal) return '';
      const seconds = (response.durationMs / 1000).toFixed(1);
      return `${paint('dim', `${response.harness ?? ''} ${seconds}s  session ${response.session}`)}\n`;
    }
    const why = response.error === undefined ? '' : `: ${printable(response.error.message)}`;
    const advice = response.error === undefined ? '' : `\n  ${response.error.advice}`;
    const how = `the run ${VERBS[response.outcome]} (${response.cause} at ${response.stage})`;
    return `${paint('red', 'bridle:')} ${how}${why}${advice}\n`;
  }
}

const VERBS: Record<Exclude<Outcome, 'success'>, string> = {
  failed: 'failed',
  cancelled: 'was cancelled',
  timed_out: 'timed out',
};
