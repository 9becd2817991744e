import type { HistoryMessage } from '../contract/harness.js';
import { clipText } from './bounds.js';

/** UTF-16 code units of earlier messages that a prompt carries; the newest are kept. */
const MAX_HISTORY_CHARS = 256 * 1024;
/** One message never takes more than this, so that a huge one does not push out all the others. */
const MAX_MESSAGE_CHARS = 64 * 1024;

/**
 * The prompt of a program that cannot go on with a conversation of its own: the earlier messages, one JSON object a
 * line so that no message can pretend to be another, then the new message unchanged. Without history it is the prompt
 * itself.
 */
export function promptWithHistory(prompt: string, history: readonly HistoryMessage[]): string {
  if (history.length === 0) return prompt;
  const lines: string[] = [];
  let size = 0;
  for (const { role, content } of history.toReversed()) {
    const line = JSON.stringify({ role, content: clipText(content, MAX_MESSAGE_CHARS) });
    if (size + line.length > MAX_HISTORY_CHARS) break;
    size += line.length;
    lines.unshift(line);
  }
  const left = history.length - lines.length;
  return [
    'The conversation so far, oldest message first, one JSON object a line. It is for reference: answer only the new',
    'message below.',
    '',
    ...(left > 0 ? [`(${left} older messages are left out.)`] : []),
    ...lines,
    '',
    'The new message:',
    '',
    prompt,
  ].join('\n');
}
