import type { Harness } from '../contract/harness.js';
import { CodexHarness } from './codex/codex.js';
import { EchoHarness } from './echo/echo.js';
import { PiHarness } from './pi/pi.js';
import { ScriptHarness } from './script/script.js';

export interface HarnessOptions {
  /** PATH on which programs are searched and which they get. */
  readonly path: string;
  /** The daemon's environment; each harness takes an explicit list of names from it. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths of programs that are not to be searched on PATH. */
  readonly programs?: { readonly codex?: string | undefined; readonly pi?: string | undefined };
  /** Names of further variables that a program may see. */
  readonly passEnv?: {
    readonly codex?: readonly string[] | undefined;
    readonly pi?: readonly string[] | undefined;
    readonly script?: readonly string[] | undefined;
  };
  readonly script?: { readonly program: string; readonly args?: readonly string[] | undefined } | undefined;
}

/**
 * All harnesses, in the order in which the automatic choice tries them: codex, pi. echo and script are never chosen
 * automatically. This is the one file that names a concrete harness.
 */
export function createHarnesses(options: HarnessOptions): ReadonlyMap<string, Harness> {
  const { path, env, programs, passEnv, script } = options;
  const common = { path, env };
  return new Map<string, Harness>([
    ['codex', new CodexHarness({ ...common, program: programs?.codex ?? 'codex', passEnv: passEnv?.codex ?? [] })],
    ['pi', new PiHarness({ ...common, program: programs?.pi ?? 'pi', passEnv: passEnv?.pi ?? [] })],
    ['echo', new EchoHarness()],
    [
      'script',
      new ScriptHarness({
        ...common,
        program: script?.program,
        args: script?.args ?? [],
        passEnv: passEnv?.script ?? [],
      }),
    ],
  ]);
}
