import type { EventRow } from '../contract/events.js';
import type { Paint } from './color.js';
import { printable } from './color.js';

const WIDTH = 160;

/** One event as one line for people: number, time, type, what matters. */
export function eventText(row: EventRow, paint: Paint): string {
  const time = row.ts.slice(11, 23);
  const detail = printable(detailOf(row)).replace(/\s+/g, ' ').slice(0, WIDTH);
  return `${paint('dim', `${row.seq} ${time}`)} ${paint('cyan', row.type)} ${detail}`.trimEnd();
}

function detailOf(row: EventRow): string {
  switch (row.type) {
    case 'text':
    case 'reasoning':
      return row.text;
    case 'tool.call':
      return `${row.name} ${JSON.stringify(row.input)}`;
    case 'tool.result':
      return `${row.name} ${row.ok ? 'ok' : 'failed'} ${row.output}`;
    case 'usage':
      return `input ${row.usage.inputTokens ?? '?'} output ${row.usage.outputTokens ?? '?'}`;
    case 'progress':
    case 'notice':
      return row.message;
    case 'run.accepted':
      return `request ${row.request}`;
    case 'run.routed':
      return `${row.route.harness} (${row.route.reason})`;
    case 'run.started':
      return row.harness;
    case 'run.terminal':
      return `${row.terminal.outcome} (${row.terminal.cause})`;
    default:
      return '';
  }
}
