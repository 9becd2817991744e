import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BridleError } from '../contract/errors.js';
import type { HarnessEvent } from '../contract/events.js';
import type { Harness, Launcher } from '../contract/harness.js';
import type { Request } from '../contract/request.js';
import type { RouteDecision } from '../contract/route.js';
import type { Cleanup, Lifecycle } from '../lifecycle/lifecycle.js';
import { decideRoute } from '../routing/decide-route.js';
import type { Agent } from './agents.js';
import { harnessWishes } from './harness-request.js';
import type { RunRecord } from './run-record.js';
import type { StopSignal } from './stop-signal.js';
import { type Evidence, evidenceOfError, evidenceOfFinal } from './terminal.js';

export interface ExecutionDeps {
  readonly stateDir: string;
  readonly harnesses: ReadonlyMap<string, Harness>;
  readonly lifecycle: Lifecycle;
  /** Resolves when everything recorded so far is on disk; the harness starts after that. */
  readonly begin: () => Promise<void>;
}

export interface Work {
  readonly request: Request;
  readonly agent: Agent;
  readonly record: RunRecord;
  /** Working directory, absolute; made when the request does not name it. */
  readonly cwd: string;
  readonly stop: StopSignal;
}

export interface Execution {
  readonly evidence: Evidence;
  readonly cleanup: Cleanup;
}

/** How long a harness may take to end its stream after it was told to stop. */
const STOP_GRACE_MS = 10_000;

/**
 * Routes and executes one run and cleans up after it. Whatever goes wrong is evidence of the run; only a failure to
 * record is thrown.
 */
export async function execute(work: Work, deps: ExecutionDeps): Promise<Execution> {
  const { request, agent, record, cwd, stop } = work;
  let route: RouteDecision;
  let harness: Harness;
  let wishes: ReturnType<typeof harnessWishes>;
  try {
    const model = request.model ?? (agent.controls.model || null);
    route = await decideRoute({ pin: request.harness, agentHarness: agent.controls.harness, model }, deps.harnesses);
    harness = deps.harnesses.get(route.harness) as Harness;
    wishes = harnessWishes(request, agent, harness.info());
  } catch (error) {
    await deps.begin();
    return { evidence: evidenceOfError(error, stop.reason), cleanup: { empty: true } };
  }

  const history = await record.session.history();
  record.routed(route);
  record.started(request.prompt);
  if (harness.info().kind === 'builtin') {
    await deps.begin();
    const context = { launcher: NO_LAUNCHER, cwd, scratch: '/' };
    return {
      evidence: await consume(harness, { ...wishes, ...context, history }, record, stop),
      cleanup: { empty: true },
    };
  }

  const scratch = join(deps.stateDir, 'scratch', record.run);
  await using _scratch = await privateDirectory(scratch);
  if (request.cwd === undefined) await mkdir(cwd, { recursive: true, mode: 0o700 });
  const lease = deps.lifecycle.lease({ id: record.run, kind: 'run', harness: route.harness });
  // Cleanup starts the moment the run is told to stop; it also ends the harness's stream.
  const onAbort = () => void lease.close();
  stop.signal.addEventListener('abort', onAbort, { once: true });
  await deps.begin();
  const context = { launcher: lease.launcher, cwd, scratch };
  const evidence = await consume(harness, { ...wishes, ...context, history }, record, stop);
  stop.signal.removeEventListener('abort', onAbort);
  return { evidence, cleanup: await lease.close() };
}

type ConsumeRequest = Omit<Parameters<Harness['execute']>[0], 'run' | 'session' | 'signal'>;

/** Records every event of the harness as it comes and returns what its last one says. */
async function consume(
  harness: Harness,
  request: ConsumeRequest,
  record: RunRecord,
  stop: StopSignal,
): Promise<Evidence> {
  using overdue = new Overdue(stop.signal);
  let final: Extract<HarnessEvent, { type: 'final' }> | undefined;
  try {
    const ids = { run: record.run, session: record.session.name, signal: stop.signal };
    const events = harness.execute({ ...request, ...ids })[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([events.next(), overdue.promise]);
      if (next === undefined)
        throw new BridleError('INTERNAL', `${harness.info().name} did not end when it was told to`);
      if (next.done) break;
      stop.heard();
      if (next.value.type === 'final') final = next.value;
      else record.event(next.value);
    }
  } catch (error) {
    return evidenceOfError(error, stop.reason);
  }
  if (final === undefined) {
    return evidenceOfError(new BridleError('INTERNAL', `${harness.info().name} ended without a result`), stop.reason);
  }
  return evidenceOfFinal(final, stop.reason);
}

/** Resolves with undefined some time after the signal fired. */
class Overdue implements Disposable {
  readonly promise: Promise<undefined>;
  readonly #signal: AbortSignal;
  readonly #onAbort: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(signal: AbortSignal) {
    const { promise, resolve } = withResolvers<undefined>();
    this.promise = promise;
    this.#signal = signal;
    this.#onAbort = () => {
      this.#timer = setTimeout(() => resolve(undefined), STOP_GRACE_MS);
    };
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    clearTimeout(this.#timer);
  }
}

/** Promise.withResolvers, which Node 20 does not have. */
function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const NO_LAUNCHER: Launcher = {
  launch: () => Promise.reject(new BridleError('INTERNAL', 'a built-in harness starts no process')),
};

async function privateDirectory(path: string): Promise<AsyncDisposable> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
