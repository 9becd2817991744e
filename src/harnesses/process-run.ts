import { BridleError } from '../contract/errors.js';
import type { HarnessEvent } from '../contract/events.js';
import type { ExecuteRequest, LaunchSpec, ProcessExit } from '../contract/harness.js';
import type { Cost, Usage } from '../contract/terminal.js';
import { boundValue, clipText, MAX_FINAL_TEXT, piecesOf } from './bounds.js';
import { JsonLines, type Line } from './jsonl.js';
import { type EarlyStop, ProcessOutput } from './process-output.js';
import { createScrubber, type Scrubber } from './secrets.js';

export type LiveEvent = Exclude<HarnessEvent, { type: 'final' }>;
export type FinalEvent = Extract<HarnessEvent, { type: 'final' }>;

/** What a stream came to, judged by its events alone. */
export interface Conclusion {
  /** True when the stream says that the run is complete and good; `unknown` when it says nothing about that. */
  readonly ok: boolean | 'unknown';
  readonly text: string;
  readonly model: string | null;
  readonly usage: Usage;
  readonly cost: Cost;
  /** What the stream says about a failure, else null. */
  readonly failure: string | null;
}

/** Turns native events into canonical ones. One instance reads one run. */
export interface StreamMapper {
  /** Canonical events of one native event; unknown and malformed ones become notices. */
  map(native: Readonly<Record<string, unknown>>): readonly LiveEvent[];
  /** True when the program has said its last word and should exit now. */
  settled(): boolean;
  conclude(): Conclusion;
}

/** Notices about unreadable output; more of them are only counted. */
const MAX_NOISE_NOTICES = 200;

/**
 * Runs one program: input to its stdin, its stdout as JSON lines through the mapper, exactly one `final` last.
 * @throws BridleError SPAWN_FAILED from the launcher
 */
export async function* runProcess(
  request: ExecuteRequest,
  spec: LaunchSpec,
  input: string,
  mapper: StreamMapper,
): AsyncGenerator<HarnessEvent, void, undefined> {
  if (request.signal.aborted) {
    yield abortedFinal(mapper);
    return;
  }
  const scrubber = createScrubber(spec.env);
  const process = await request.launcher.launch(spec);
  await using output = new ProcessOutput(process, request.signal, () => mapper.settled());
  let stdinError: string | null = null;
  process.stdin.on('error', (error: NodeJS.ErrnoException) => {
    stdinError = error.code ?? error.message;
  });
  process.stdin.end(input);

  yield* readEvents(output, mapper, scrubber);
  const exit = await output.exit();
  if (output.stopped === 'aborted') {
    yield abortedFinal(mapper);
    return;
  }
  yield* oddities(output.stopped, output.readError, exit, mapper);
  yield await finalOf({ output, mapper, scrubber, exit, stdinError });
}

async function* readEvents(
  output: ProcessOutput,
  mapper: StreamMapper,
  scrubber: Scrubber,
): AsyncGenerator<LiveEvent, void, undefined> {
  const lines = new JsonLines({ clean: scrubber.known });
  let noise = 0;
  function* events(of: Iterable<Line>): Generator<LiveEvent> {
    for (const line of of) {
      if (output.stopped === 'aborted') return;
      if (line.kind === 'object') {
        for (const event of mapper.map(line.value)) yield* inPieces(event);
        continue;
      }
      noise += 1;
      if (noise <= MAX_NOISE_NOTICES) yield noiseNotice(line);
    }
  }
  for (let chunk = await output.next(); chunk !== undefined; chunk = await output.next()) {
    yield* events(lines.push(chunk));
  }
  yield* events(lines.end());
  if (noise > MAX_NOISE_NOTICES) {
    yield { type: 'notice', message: `${noise - MAX_NOISE_NOTICES} more unreadable lines on stdout` };
  }
}

/** A long text becomes several events, so that no row of a log is huge; nothing of it is lost. */
function* inPieces(event: LiveEvent): Generator<LiveEvent> {
  if (event.type !== 'text' && event.type !== 'reasoning') yield event;
  else for (const text of piecesOf(event.text)) yield { type: event.type, text };
}

function noiseNotice(line: Exclude<Line, { kind: 'object' }>): LiveEvent {
  const message =
    line.kind === 'oversize' ? `a line of ${line.bytes} bytes on stdout was dropped` : `not an event: ${line.text}`;
  return { type: 'notice', message };
}

function* oddities(
  stopped: EarlyStop | undefined,
  readError: string | undefined,
  exit: ProcessExit | undefined,
  mapper: StreamMapper,
): Generator<LiveEvent> {
  if (readError !== undefined) yield { type: 'notice', message: `reading stdout failed: ${readError}` };
  if (stopped === 'held-open') {
    yield { type: 'notice', message: 'the program is gone, but one of its descendants still holds its stdout' };
  }
  if (exit === undefined) {
    yield { type: 'notice', message: 'the program finished its output but did not exit; it is ended' };
  } else if (mapper.conclude().ok === true && exit.code !== 0) {
    yield { type: 'notice', message: `${describeExit(exit)} after a complete answer` };
  }
}

async function finalOf(end: {
  output: ProcessOutput;
  mapper: StreamMapper;
  scrubber: Scrubber;
  exit: ProcessExit | undefined;
  stdinError: string | null;
}): Promise<FinalEvent> {
  const { ok, failure, text: whole, model, usage, cost } = end.mapper.conclude();
  const text = clipText(whole, MAX_FINAL_TEXT);
  const good = ok === 'unknown' ? end.exit?.code === 0 : ok;
  const final = { type: 'final', ok: good, text, model, usage, cost } as const;
  if (good) return final;
  const parts = failure === null ? [`the program ended without a result: ${describeExit(end.exit)}`] : [failure];
  if (failure === null) {
    if (end.stdinError !== null) parts.push(`it did not read its input (${end.stdinError})`);
    const stderr = await end.output.stderrTail();
    if (stderr !== '') parts.push(`stderr: ${stderr}`);
  }
  return { ...final, error: new BridleError('HARNESS_FAILED', end.scrubber.all(parts.join('; '))).toBody() };
}

function describeExit(exit: ProcessExit | undefined): string {
  if (exit === undefined) return 'it did not exit';
  return exit.signal === null ? `exit status ${exit.code}` : `ended by signal ${exit.signal}`;
}

/** The final of a run that was aborted: why is the service's to say, so it carries no error. */
function abortedFinal(mapper: StreamMapper): FinalEvent {
  const { text, model, usage, cost } = mapper.conclude();
  return { type: 'final', ok: false, text: clipText(text, MAX_FINAL_TEXT), model, usage, cost };
}

/** A native event that has no canonical type, kept as it is. */
export function unknownEvent(native: Readonly<Record<string, unknown>>): LiveEvent {
  const type = typeof native['type'] === 'string' ? native['type'].slice(0, 64) : '(none)';
  return { type: 'notice', message: `unknown event ${type}`, native: boundValue(native) };
}

/** A native event of a known type whose fields are not what they should be. */
export function malformedEvent(native: Readonly<Record<string, unknown>>): LiveEvent {
  const type = typeof native['type'] === 'string' ? native['type'].slice(0, 64) : '(none)';
  return { type: 'notice', message: `malformed event ${type}`, native: boundValue(native) };
}
