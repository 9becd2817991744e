export type Color = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
/** Text in a colour, or the text itself where colours are off. */
export type Paint = (color: Color, text: string) => string;

const CODES: Record<Color, readonly [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

/** Colours only on a terminal, and never when $NO_COLOR is set (no-color.org) or the terminal is dumb. */
export function paintFor(isTerminal: boolean, env: NodeJS.ProcessEnv): Paint {
  if (!isTerminal || env['NO_COLOR'] || env['TERM'] === 'dumb') return (_color, text) => text;
  return (color, text) => {
    const [on, off] = CODES[color];
    return `\u001b[${on}m${text}\u001b[${off}m`;
  };
}

/** Text without control characters other than newline and tab: an agent must not drive the reader's terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ''));
}
