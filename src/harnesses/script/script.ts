import { BridleError } from '../../contract/errors.js';
import type { HarnessEvent } from '../../contract/events.js';
import type { ExecuteRequest, Harness, HarnessHealth, HarnessInfo } from '../../contract/harness.js';
import { programEnvironment } from '../environment.js';
import { runProcess } from '../process-run.js';
import { Program } from '../programs.js';
import { inputLine } from './protocol.js';
import { ScriptStream } from './stream.js';

export interface ScriptOptions {
  /** Absolute path of the executable; undefined when none is configured. */
  readonly program: string | undefined;
  readonly args: readonly string[];
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  readonly passEnv: readonly string[];
}

/**
 * Runs a configured executable: the simplest way to write a harness. It reads one JSON line from stdin and prints
 * canonical events as JSON lines; see spec/harness.md.
 */
export class ScriptHarness implements Harness {
  readonly #options: ScriptOptions;
  readonly #program: Program | undefined;

  constructor(options: ScriptOptions) {
    this.#options = options;
    this.#program = options.program === undefined ? undefined : new Program(options.program, options.path);
  }

  info(): HarnessInfo {
    return {
      name: 'script',
      kind: 'process',
      program: this.#program?.find() ?? null,
      automatic: false,
      // All of them are handed to the script, which is the user's own code.
      supports: ['model', 'system', 'cwd', 'permissions', 'reasoning', 'temperature', 'seed'],
      promptBy: 'stdin',
    };
  }

  async healthCheck(): Promise<HarnessHealth> {
    return this.#program?.health() ?? { healthy: false, reason: 'no program is configured in [harness.script]' };
  }

  async *execute(request: ExecuteRequest): AsyncGenerator<HarnessEvent, void, undefined> {
    if (this.#program === undefined) {
      throw new BridleError('HARNESS_UNAVAILABLE', 'no program is configured in [harness.script]');
    }
    const { args, path, env, passEnv } = this.#options;
    const spec = {
      argv: [this.#program.require(), ...args] as const,
      env: programEnvironment({ path, env, names: passEnv, scratch: request.scratch }),
      cwd: request.cwd,
    };
    yield* runProcess(request, spec, inputLine(request), new ScriptStream());
  }
}
