import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KEY_NAME, writeCodexHome, writePiHome } from '../../../fixtures/provider-double/homes.mjs';
import { type Provider, startProvider } from '../../../fixtures/provider-double/server.mjs';
import { fullDirectory, installClis } from '../../../scripts/full/install-clis.mjs';
import type { HarnessEvent } from '../../../src/contract/events.js';
import type { ExecuteRequest, Harness } from '../../../src/contract/harness.js';
import { type Cleanup, Lifecycle } from '../../../src/lifecycle/lifecycle.js';
import { harness } from '../../harnesses/workbench.js';
import { MemoryStore } from '../../lifecycle/support.js';

/** The key that the CLIs get for the double; it must never be seen again. */
export const KEY = 'key-for-the-provider-double';

export interface Ran {
  readonly events: readonly HarnessEvent[];
  readonly cleanup: Cleanup;
  readonly workspace: string;
}

export interface Running {
  readonly pid: number;
  readonly abort: () => void;
}

/** The real CLIs, the provider double, and real containment, in a directory outside the temporary one. */
export class RealClis implements AsyncDisposable {
  readonly provider: Provider;
  readonly #root: string;
  readonly #programs: string;
  readonly #lifecycle: Lifecycle;
  readonly store: MemoryStore;

  private constructor(provider: Provider, root: string, programs: string) {
    this.provider = provider;
    this.#root = root;
    this.#programs = programs;
    this.store = new MemoryStore();
    this.#lifecycle = new Lifecycle({ stateDir: root, store: this.store });
  }

  static async create(): Promise<RealClis> {
    const programs = await installClis();
    const root = await mkdtemp(join(fullDirectory(), 'run-'));
    const provider = await startProvider();
    await writeCodexHome(join(root, 'home'), provider.url);
    await writePiHome(join(root, 'home'), provider.url);
    return new RealClis(provider, root, programs);
  }

  harness(name: 'codex' | 'pi'): Harness {
    return harness(name, {
      path: `${this.#programs}:${dirname(process.execPath)}:/usr/bin:/bin`,
      env: { HOME: join(this.#root, 'home'), PI_OFFLINE: '1', [KEY_NAME]: KEY },
      passEnv: { codex: [KEY_NAME], pi: [KEY_NAME] },
    });
  }

  /** One run in a fresh workspace, with its lease closed afterwards. */
  async run(
    name: 'codex' | 'pi',
    request: Partial<ExecuteRequest>,
    onStart: (running: Running) => void = () => undefined,
  ): Promise<Ran> {
    const workspace = await mkdtemp(join(this.#root, 'workspace-'));
    const scratch = await mkdtemp(join(this.#root, 'scratch-'));
    const controller = new AbortController();
    const lease = this.#lifecycle.lease({ id: 'run-1', kind: 'run', harness: name });
    const events: HarnessEvent[] = [];
    try {
      const stream = this.harness(name).execute({
        run: 'run-1',
        session: 'session-1',
        prompt: 'say hello',
        history: [],
        system: null,
        model: name === 'pi' ? 'double/double-model' : null,
        cwd: workspace,
        scratch,
        permissions: 'unrestricted',
        reasoning: null,
        temperature: null,
        seed: null,
        signal: controller.signal,
        ...request,
        launcher: {
          launch: async (spec) => {
            const child = await lease.launcher.launch(spec);
            onStart({ pid: child.pid, abort: () => controller.abort() });
            return child;
          },
        },
      });
      for await (const event of stream) events.push(event);
    } finally {
      await lease.close();
    }
    return { events, cleanup: await lease.close(), workspace };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lifecycle[Symbol.asyncDispose]();
    await this.provider.close();
    await rm(this.#root, { recursive: true, force: true });
  }
}
