import type { Logger } from 'pino';
import { AuditLog } from '../audit/audit-log.js';
import { Journal } from '../durable/journal.js';
import { StateDir } from '../durable/state-dir.js';
import { createHarnesses, type HarnessOptions } from '../harnesses/registry.js';
import { JournalLeaseStore } from '../lifecycle/journal-lease-store.js';
import { Lifecycle } from '../lifecycle/lifecycle.js';
import { Mount } from '../mount/mount.js';
import { Queue } from '../queue/queue.js';
import { Agents, type ControlName } from '../service/agents.js';
import { Service } from '../service/service.js';
import { SessionStore } from '../sessions/session-store.js';
import { type Config, EMPTY_CONFIG, loadConfig } from './config.js';
import { harnessSerials } from './harness-serials.js';
import { checkApart } from './paths.js';
import { ResourceStack } from './resource-stack.js';
import { StatusPage } from './status-page.js';
import { version } from './version.js';

/** The agent that is there without any configuration. */
const DEFAULT_AGENT = 'default';

export interface DaemonOptions {
  readonly mount: string;
  readonly state: string;
  /** Configuration file; undefined for none. */
  readonly config: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
}

export interface RunningDaemon {
  readonly mount: string;
  readonly state: string;
  /** Proves that both halves work: the JavaScript thread by running this, the session threads by answering it. */
  probe(): Promise<void>;
  /** Ends runs, writes their facts, unmounts, releases the state directory. */
  stop(): Promise<void>;
  /** Resolves when the daemon has to end by itself: unmounted by somebody (undefined), or unable to record. */
  readonly ended: Promise<Error | undefined>;
}

/**
 * Starts everything in order: state directory, journal, facts, recovery, mount. When this resolves the mount answers.
 * What was opened is closed again when a later step fails.
 */
export async function startDaemon(options: DaemonOptions): Promise<RunningDaemon> {
  const { log } = options;
  await using opened = new ResourceStack();
  const config = options.config === undefined ? EMPTY_CONFIG : await loadConfig(options.config);
  await checkApart(options.mount, options.state);
  const stateDir = opened.use(await StateDir.open(options.state));
  const journal = opened.use(await Journal.open(stateDir.path));
  if (journal.recovered.torn.length > 0) log.warn({ torn: journal.recovered.torn }, 'the end of the journal was torn');

  let end: (error: Error | undefined) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => {
    end = resolve;
  });
  journal.onFailed(end);

  const nextSerial = () => stateDir.serials.next();
  const audit = await AuditLog.open(journal);
  const queue = await Queue.open(journal, nextSerial, { perAgent: config.limits.requests });
  const sessions = new SessionStore(journal, nextSerial);
  const agents = await Agents.open(stateDir.path, journal, nextSerial);
  configureAgents(agents, config);
  const harnesses = createHarnesses(harnessOptions(config, options.env));
  const lifecycle = new Lifecycle({
    stateDir: stateDir.path,
    store: new JournalLeaseStore(journal),
  });
  const service = new Service({
    stateDir: stateDir.path,
    journal,
    queue,
    sessions,
    audit,
    agents,
    lifecycle,
    harnesses,
    log,
    maxRuns: config.limits.runs,
    onFatal: end,
  });
  await service.recover();
  audit.append({ type: 'daemon.started', version, pid: process.pid });
  await journal.durable();

  const mount = opened.use(
    await Mount.open(
      {
        path: options.mount,
        stateId: stateDir.id,
        allowOther: config.mount.allow_other ?? process.getuid?.() === 0,
      },
      {
        stateDir: stateDir.path,
        agents,
        queue,
        sessions,
        nextSerial,
        service,
        harnesses,
        harnessSerials: await harnessSerials(journal, [...harnesses.keys()], nextSerial),
        version,
        log,
        onEnd: () => end(undefined),
      },
    ),
  );
  const status = opened.use(new StatusPage(mount, service, { version, strength: lifecycle.strength }, log));
  await mount.probe();
  // Runs end before the mount goes, so that their clients can still read the answers.
  opened.defer(async () => {
    status.set('stopping');
    await service.stop();
  });
  service.start();
  status.set('ready');
  await journal.durable();

  const resources = opened.move();
  return {
    mount: mount.path,
    state: stateDir.path,
    probe: () => mount.probe(),
    stop: () => resources[Symbol.asyncDispose](),
    ended,
  };
}

/** Configured agents are made once; a control that the configuration names is set again at every start. */
function configureAgents(agents: Agents, config: Config): void {
  const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  if (agents.get(DEFAULT_AGENT) === undefined) agents.create({ name: DEFAULT_AGENT, ...owner });
  for (const [name, wanted] of Object.entries(config.agents)) {
    const agent = agents.get(name) ?? agents.create({ name, ...owner });
    const controls = { harness: wanted.harness, model: wanted.model, 'system.md': wanted.system };
    for (const [control, value] of Object.entries(controls) as [ControlName, string | undefined][]) {
      if (value !== undefined && value !== agent.controls[control]) agents.setControl(name, control, value);
    }
  }
}

function harnessOptions(config: Config, env: NodeJS.ProcessEnv): HarnessOptions {
  const { codex, pi, script } = config.harness;
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    path: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    env: Object.fromEntries(defined),
    programs: { codex: codex?.program, pi: pi?.program },
    passEnv: { codex: codex?.env, pi: pi?.env, script: script?.env },
    script,
  };
}
