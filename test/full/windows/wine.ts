import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { project } from '../../setup/project-copy.js';
import { runProgram } from '../../setup/run-program.js';

const scenarios = join(import.meta.dirname, 'scenarios');

/** A scenario that takes longer than this is ended, milliseconds. */
const SCENARIO_TIMEOUT_MS = 120_000;

/** A path of this machine as programs under Wine see it. */
function windowsPath(path: string): string {
  return `Z:${path.replaceAll('/', '\\')}`;
}

async function mustRun(program: string, args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await runProgram(program, args);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${stdout}${stderr}`);
}

/** The addon and the helper of the scenarios, built for Windows. */
async function build(folder: string): Promise<void> {
  const toolchain = join(project, 'native/process/windows/mingw-w64.cmake');
  const options = [`-DCMAKE_TOOLCHAIN_FILE=${toolchain}`, '-DBRIDLE_WERROR=ON'];
  await mustRun('cmake', ['-S', project, '-B', folder, ...options]);
  await mustRun('cmake', ['--build', folder, '--parallel', '2']);
  const helper = ['-o', join(folder, 'helper.exe'), join(import.meta.dirname, 'helper.cc'), '-lshell32'];
  await mustRun('x86_64-w64-mingw32-g++-posix', ['-std=c++20', '-Wall', '-Wextra', '-Werror', '-static', ...helper]);
}

export interface ScenarioOptions {
  /** Folder of the scenario, with its lease records; default a new one. */
  readonly folder?: string;
  readonly args?: readonly string[];
}

export interface ScenarioOutcome {
  readonly code: number | null;
  /** What the scenario reported; undefined when it reported nothing. */
  readonly result: unknown;
  /** What it printed, for a message. */
  readonly output: string;
  readonly folder: string;
}

/** A Windows of its own, with Bridle built for it. Disposing ends every process of it and removes it. */
export class Wine implements AsyncDisposable {
  readonly #root: string;
  readonly #prefix: string;
  readonly #build: string;
  readonly #env: NodeJS.ProcessEnv;
  #runs = 0;
  /** A process that lives as long as this. */
  #stay: Promise<unknown> = Promise.resolve();

  private constructor() {
    this.#root = mkdtempSync(join(tmpdir(), 'wine-'));
    this.#prefix = join(this.#root, 'prefix');
    this.#build = join(this.#root, 'build');
    mkdirSync(this.#prefix);
    this.#env = {
      PATH: process.env['PATH'],
      // Wine would add its menus and links to the real one.
      HOME: this.#root,
      TMPDIR: this.#root,
      WINEPREFIX: this.#prefix,
      WINEDEBUG: '-all',
      WINEDLLOVERRIDES: 'mscoree,mshtml=;winemenubuilder.exe=d',
      BRIDLE_NATIVE_DIR: windowsPath(join(this.#build, 'Release')),
    };
  }

  static async start(): Promise<Wine> {
    const wine = new Wine();
    try {
      await build(wine.#build);
      await wine.#must('wineboot', ['-i']);
      // Node.js refuses the version that Wine pretends to be by default.
      await wine.#must('winecfg', ['-v', 'win10']);
      wine.#keepServices();
    } catch (error) {
      await wine[Symbol.asyncDispose]();
      throw error;
    }
    return wine;
  }

  /** Services that end and start again between two scenarios would be taken for processes of ours. */
  #keepServices(): void {
    this.#stay = this.#wine('wine', [join(this.#build, 'helper.exe'), 'stay'], 0);
  }

  folder(): string {
    const folder = join(this.#root, `run-${this.#runs++}`);
    mkdirSync(folder);
    return folder;
  }

  /** Runs one of the scenarios in a node.exe. */
  async run(node: string, scenario: string, options: ScenarioOptions = {}): Promise<ScenarioOutcome> {
    const folder = options.folder ?? this.folder();
    const resultFile = join(this.#root, `result-${this.#runs++}.json`);
    const paths = [join(scenarios, `${scenario}.mjs`), join(project, 'dist'), folder, resultFile];
    const args = [node, ...[...paths, join(this.#build, 'helper.exe')].map(windowsPath), ...(options.args ?? [])];
    const { code, output } = await this.#wine('wine', args);
    return { code, output, folder, result: readResult(resultFile) };
  }

  /** The wine server keeps its socket in a directory that is named after the prefix. */
  #serverDirectory(): string {
    const { dev, ino } = statSync(this.#prefix);
    return `/tmp/.wine-${process.getuid?.()}/server-${dev.toString(16)}-${ino.toString(16)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Fails when there is no server any more, and then there is nothing to end.
    await this.#wine('wineserver', ['-k']);
    await this.#wine('wineserver', ['-w']);
    await this.#stay;
    rmSync(this.#serverDirectory(), { recursive: true, force: true });
    rmSync(this.#root, { recursive: true, force: true });
  }

  async #must(program: string, args: readonly string[]): Promise<void> {
    const { code, output } = await this.#wine(program, args);
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${output}`);
  }

  /** `timeout` in milliseconds, 0 for none. Output goes to a file: node.exe under Wine cannot write into a pipe of Linux. */
  async #wine(
    program: string,
    args: readonly string[],
    timeout = SCENARIO_TIMEOUT_MS,
  ): Promise<{ code: number | null; output: string }> {
    const outputFile = join(this.#root, `output-${this.#runs++}`);
    const output = openSync(outputFile, 'w');
    try {
      const code = await new Promise<number | null>((resolve, reject) => {
        const options = {
          env: this.#env,
          cwd: this.#root,
          timeout,
          killSignal: 'SIGKILL',
        } as const;
        const child = spawn(program, args, { ...options, stdio: ['ignore', output, output] });
        child.once('error', reject);
        child.once('exit', resolve);
      });
      return { code, output: readFileSync(outputFile, 'utf8') };
    } finally {
      closeSync(output);
    }
  }
}

function readResult(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
