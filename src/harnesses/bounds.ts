/** UTF-16 code units of a text, of a reasoning block or of a tool's output that one event carries. */
const MAX_EVENT_TEXT = 64 * 1024;
/** Bytes of JSON that an event carries as a tool's input or as a native event. */
const MAX_EVENT_JSON = 64 * 1024;
const MAX_DEPTH = 64;
/** UTF-16 code units of a final text. */
export const MAX_FINAL_TEXT = 4 * 1024 * 1024;
/** UTF-16 code units of a notice, of a progress line, of an error message. */
export const MAX_MESSAGE = 4096;

/** Cuts a text in its middle, so that its beginning and its end stay; says how many characters were left out. */
export function clipText(text: string, maxChars: number = MAX_EVENT_TEXT): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  const head = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, '');
  const tail = text.slice(-half).replace(/^[\uDC00-\uDFFF]/, '');
  return `${head}\n[… ${text.length - head.length - tail.length} characters left out …]\n${tail}`;
}

/** Pieces of at most MAX_EVENT_TEXT, never inside a surrogate pair; joined they are the text. */
export function* piecesOf(text: string, size: number = MAX_EVENT_TEXT): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + size, text.length);
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end = Math.min(end + 1, text.length);
    yield text.slice(start, end);
    start = end;
  }
}

/** The value itself when it is small and flat enough to be kept in an event, else the beginning of its JSON. */
export function boundValue(value: unknown): unknown {
  if (!isShallow(value, MAX_DEPTH)) return { clipped: 'nested too deeply' };
  const json = JSON.stringify(value) ?? 'null';
  return json.length <= MAX_EVENT_JSON ? value : { clipped: clipText(json, 1024), length: json.length };
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isShallow(inner, depth - 1));
}
