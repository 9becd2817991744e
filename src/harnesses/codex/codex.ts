import { writeFile } from 'node:fs/promises';
import type { HarnessEvent } from '../../contract/events.js';
import type { ExecuteRequest, Harness, HarnessHealth, HarnessInfo } from '../../contract/harness.js';
import { programEnvironment } from '../environment.js';
import { runProcess } from '../process-run.js';
import { Program } from '../programs.js';
import { refuseUnsupported } from '../support.js';
import { promptWithHistory } from '../transcript.js';
import { CODEX_ENV, CODEX_PERMISSIONS, codexArguments, systemFile } from './command.js';
import { CodexStream } from './stream.js';

export interface CodexOptions {
  /** Bare name or absolute path. */
  readonly program: string;
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  /** Further names of the daemon's environment that codex may see. */
  readonly passEnv: readonly string[];
}

/** Runs `codex exec`, one process a run. */
export class CodexHarness implements Harness {
  readonly #options: CodexOptions;
  readonly #program: Program;

  constructor(options: CodexOptions) {
    this.#options = options;
    this.#program = new Program(options.program, options.path);
  }

  info(): HarnessInfo {
    return {
      name: 'codex',
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
    refuseUnsupported(request, this.info(), CODEX_PERMISSIONS);
    const program = this.#program.require();
    if (request.system !== null) await writeFile(systemFile(request.scratch), request.system, { mode: 0o600 });
    const { path, env, passEnv } = this.#options;
    const spec = {
      argv: codexArguments(program, request),
      env: programEnvironment({ path, env, names: [...CODEX_ENV, ...passEnv], scratch: request.scratch }),
      cwd: request.cwd,
    };
    const input = promptWithHistory(request.prompt, request.history);
    yield* runProcess(request, spec, input, new CodexStream(request.model));
  }
}
