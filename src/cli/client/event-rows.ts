import type { EventRow } from '../../contract/events.js';
import { type FollowOptions, followLines } from './follow-lines.js';

/** One row of an events file with the line it stood on, so that `--json` prints exactly what the daemon wrote. */
export interface EventLine {
  readonly line: string;
  readonly row: EventRow;
}

/** Rows of an events file while it grows; see followLines. Lines that are no event rows are left out. */
export async function* followEvents(path: string, options: FollowOptions): AsyncGenerator<EventLine, void, undefined> {
  for await (const line of followLines(path, options)) {
    const row = parseRow(line);
    if (row !== undefined) yield { line, row };
  }
}

/** True when this row is the last one of its run. */
export function isTerminal(row: EventRow): row is EventRow & { type: 'run.terminal' } {
  return row.type === 'run.terminal';
}

function parseRow(line: string): EventRow | undefined {
  try {
    const value = JSON.parse(line) as Partial<EventRow> | null;
    return typeof value?.seq === 'number' && typeof value.type === 'string' ? (value as EventRow) : undefined;
  } catch {
    return undefined;
  }
}
