import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HarnessEvent } from '../../src/contract/events.js';
import type { ExecuteRequest, Harness } from '../../src/contract/harness.js';
import { createHarnesses, type HarnessOptions } from '../../src/harnesses/registry.js';
import { TestLauncher } from './launcher.js';

export const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const replay = join(fixtures, 'agents', 'replay.mjs');

export type Final = Extract<HarnessEvent, { type: 'final' }>;

/** What the replay agent says it was given. */
export interface ReplayNote {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: string;
}

/** Path of a recorded stream. */
export function recording(cli: string, scenario: string): string {
  return join(fixtures, 'streams', cli, `${scenario}.jsonl`);
}

/** A private directory, a launcher and requests for one test; everything goes away on disposal. */
export class Workbench implements AsyncDisposable {
  readonly directory: string;
  readonly launcher = new TestLauncher();

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(): Promise<Workbench> {
    return new Workbench(await mkdtemp(join(tmpdir(), 'bridle-harness-')));
  }

  request(overrides: Partial<ExecuteRequest> = {}): ExecuteRequest {
    return {
      run: 'run-1',
      session: 'session-1',
      prompt: 'say hello',
      history: [],
      system: null,
      model: null,
      cwd: this.directory,
      scratch: this.directory,
      permissions: 'unrestricted',
      reasoning: null,
      temperature: null,
      seed: null,
      launcher: this.launcher,
      signal: new AbortController().signal,
      ...overrides,
    };
  }

  /** A harness whose program is the replay agent, controlled by REPLAY_* variables. */
  replaying(name: 'codex' | 'pi' | 'script', control: Record<string, string> = {}): Harness {
    const passEnv = ['FILE', 'CHUNK', 'NOTE', 'STDERR', 'EXIT', 'HANG', 'CHILD', 'TOKEN'].map(
      (suffix) => `REPLAY_${suffix}`,
    );
    return harness(name, {
      path: `${dirname(process.execPath)}:/usr/bin:/bin`,
      env: { HOME: this.directory, REPLAY_NOTE: this.noteFile, ...control },
      programs: { codex: replay, pi: replay },
      passEnv: { codex: passEnv, pi: passEnv, script: passEnv },
      script: { program: replay },
    });
  }

  get noteFile(): string {
    return join(this.directory, 'note.json');
  }

  async note(): Promise<ReplayNote> {
    return JSON.parse(await readFile(this.noteFile, 'utf8')) as ReplayNote;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.launcher[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true, force: true });
  }
}

export function harness(name: string, options: HarnessOptions): Harness {
  const found = createHarnesses(options).get(name);
  if (found === undefined) throw new Error(`no harness ${name}`);
  return found;
}

export async function collect(events: AsyncIterable<HarnessEvent>): Promise<HarnessEvent[]> {
  const all: HarnessEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** The last event, which must be the only final one. */
export function finalOf(events: readonly HarnessEvent[]): Final {
  const last = events.at(-1);
  const finals = events.filter((event) => event.type === 'final');
  if (last?.type !== 'final' || finals.length !== 1) throw new Error(`${finals.length} finals, last ${last?.type}`);
  return last;
}
