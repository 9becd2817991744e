import { writeFile } from 'node:fs/promises';
import { BridleError } from '../../contract/errors.js';
import type { HarnessEvent } from '../../contract/events.js';
import type { ExecuteRequest, Harness, HarnessHealth, HarnessInfo } from '../../contract/harness.js';
import { programEnvironment } from '../environment.js';
import { runProcess } from '../process-run.js';
import { Program } from '../programs.js';
import { refuseUnsupported } from '../support.js';
import { promptWithHistory } from '../transcript.js';
import { PI_ENV, PI_PERMISSIONS, piArguments, systemFile } from './command.js';
import { PiStream } from './stream.js';

export interface PiOptions {
  /** Bare name or absolute path. */
  readonly program: string;
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  /** Further names of the daemon's environment that pi may see. */
  readonly passEnv: readonly string[];
}

/** Runs `pi --mode json`, one process a run. */
export class PiHarness implements Harness {
  readonly #options: PiOptions;
  readonly #program: Program;

  constructor(options: PiOptions) {
    this.#options = options;
    this.#program = new Program(options.program, options.path);
  }

  info(): HarnessInfo {
    return {
      name: 'pi',
      kind: 'process',
      program: this.#program.find(),
      automatic: true,
      supports: ['model', 'system', 'cwd', 'permissions', 'reasoning'],
      promptBy: 'stdin',
    };
  }

  async healthCheck(): Promise<HarnessHealth> {
    return this.#program.health();
  }

  async *execute(request: ExecuteRequest): AsyncGenerator<HarnessEvent, void, undefined> {
    refuseUnsupported(request, this.info(), PI_PERMISSIONS);
    const input = promptWithHistory(request.prompt, request.history);
    if (input.trim() === '') {
      throw new BridleError('REQUEST_INVALID', 'pi takes no prompt that is only white space', { path: 'prompt' });
    }
    const program = this.#program.require();
    if (request.system !== null) await writeFile(systemFile(request.scratch), request.system, { mode: 0o600 });
    const { path, env, passEnv } = this.#options;
    const environment = programEnvironment({ path, env, names: [...PI_ENV, ...passEnv], scratch: request.scratch });
    const spec = {
      argv: piArguments(program, request),
      env: { ...environment, PI_SKIP_VERSION_CHECK: '1' },
      cwd: request.cwd,
    };
    yield* runProcess(request, spec, input, new PiStream());
  }
}
