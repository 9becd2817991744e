import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { BridleError } from '../contract/errors.js';
import { agentNameSchema, harnessNameSchema, MAX_CONTROL_BYTES } from '../contract/names.js';
import type { Journal } from '../durable/journal.js';

/** The small files of an agent that its owner may replace. */
export type ControlName = 'model' | 'harness' | 'system.md';
export const CONTROL_NAMES: readonly ControlName[] = ['model', 'harness', 'system.md'];

const recordSchema = z.looseObject({
  schema: z.literal('bridle.agent/v1'),
  serial: z.number().int().positive(),
  uid: z.number().int().nonnegative(),
  gid: z.number().int().nonnegative(),
  created: z.number().int().nonnegative(),
});

export interface Agent {
  readonly name: string;
  readonly serial: number;
  readonly uid: number;
  readonly gid: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
  /** Content of each control; the empty string leaves the choice open. */
  readonly controls: Readonly<Record<ControlName, string>>;
}

export interface AgentSpec {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly controls?: Partial<Record<ControlName, string>>;
}

const EMPTY_CONTROLS: Agent['controls'] = { model: '', harness: '', 'system.md': '' };

/**
 * The agents of one state directory: `agents/<name>/agent.json` and one file a control, changed only through the
 * journal. A change that has returned survives the death of the process.
 */
export class Agents {
  readonly #byName = new Map<string, Agent>();
  readonly #journal: Journal;
  readonly #nextSerial: () => number;

  private constructor(journal: Journal, nextSerial: () => number) {
    this.#journal = journal;
    this.#nextSerial = nextSerial;
  }

  /** @throws BridleError STATE_CORRUPT naming the file */
  static async open(stateDir: string, journal: Journal, nextSerial: () => number): Promise<Agents> {
    const agents = new Agents(journal, nextSerial);
    const directory = join(stateDir, 'agents');
    for (const name of await namesIn(directory)) {
      if (!agentNameSchema.safeParse(name).success) continue;
      const agent = await readAgent(join(directory, name), name);
      if (agent !== undefined) agents.#byName.set(name, agent);
    }
    return agents;
  }

  get(name: string): Agent | undefined {
    return this.#byName.get(name);
  }

  all(): IterableIterator<Agent> {
    return this.#byName.values();
  }

  /** @throws BridleError AGENT_NAME_INVALID, AGENT_EXISTS */
  create(spec: AgentSpec): Agent {
    if (!agentNameSchema.safeParse(spec.name).success) {
      throw new BridleError('AGENT_NAME_INVALID', `"${spec.name}" is not an agent name`);
    }
    if (this.#byName.has(spec.name)) throw new BridleError('AGENT_EXISTS', `there is an agent "${spec.name}" already`);
    const agent: Agent = {
      name: spec.name,
      serial: this.#nextSerial(),
      uid: spec.uid,
      gid: spec.gid,
      created: Date.now(),
      controls: { ...EMPTY_CONTROLS, ...spec.controls },
    };
    const { serial, uid, gid, created } = agent;
    // Controls first: a record that is there means that the whole agent is.
    for (const control of CONTROL_NAMES) this.#putControl(agent, control);
    this.#journal.put(
      `agents/${agent.name}/agent.json`,
      Buffer.from(`${JSON.stringify({ schema: 'bridle.agent/v1', serial, uid, gid, created })}\n`),
    );
    this.#journal.flushNow();
    this.#byName.set(agent.name, agent);
    return agent;
  }

  /** @throws BridleError AGENT_UNKNOWN */
  setControl(name: string, control: ControlName, value: string): Agent {
    const agent = this.#byName.get(name);
    if (agent === undefined) throw new BridleError('AGENT_UNKNOWN', `there is no agent "${name}"`);
    const changed = { ...agent, controls: { ...agent.controls, [control]: value } };
    this.#putControl(changed, control);
    this.#journal.flushNow();
    this.#byName.set(name, changed);
    return changed;
  }

  #putControl(agent: Agent, control: ControlName): void {
    this.#journal.put(`agents/${agent.name}/${control}`, Buffer.from(controlText(control, agent.controls[control])));
  }
}

/**
 * The value in the bytes written to a control. One-line controls lose surrounding white space; an empty one leaves the
 * choice open. Any harness name of the right form is taken: whether it exists is decided when a run is routed.
 *
 * @throws BridleError CONTROL_INVALID, CONTROL_TOO_LARGE
 */
export function parseControl(control: ControlName, bytes: Uint8Array): string {
  if (bytes.length > MAX_CONTROL_BYTES) throw new BridleError('CONTROL_TOO_LARGE', `${control}: ${bytes.length} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new BridleError('CONTROL_INVALID', `${control}: not valid UTF-8`, { path: control, cause });
  }
  if (text.includes('\0')) throw new BridleError('CONTROL_INVALID', `${control}: contains NUL`, { path: control });
  if (control === 'system.md') return text;

  const value = text.trim();
  const valid =
    value === '' ||
    (control === 'harness' ? harnessNameSchema.safeParse(value).success : value.length <= 256 && !/\s/.test(value));
  if (!valid) {
    throw new BridleError('CONTROL_INVALID', `${control}: ${JSON.stringify(value.slice(0, 80))} is not one name`, {
      path: control,
    });
  }
  return value;
}

/** What a reader of the control sees. */
export function controlText(control: ControlName, value: string): string {
  return control === 'system.md' || value === '' ? value : `${value}\n`;
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function readAgent(directory: string, name: string): Promise<Agent | undefined> {
  const file = join(directory, 'agent.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    // Its creation never reached the disk: nobody was told that it exists.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { serial, uid, gid, created } = recordSchema.parse(JSON.parse(text));
    const controls = { ...EMPTY_CONTROLS };
    for (const control of CONTROL_NAMES) {
      controls[control] = parseControl(control, await readFile(join(directory, control)));
    }
    return { name, serial, uid, gid, created, controls };
  } catch (cause) {
    throw new BridleError('STATE_CORRUPT', `${file}: ${(cause as Error).message}`, { cause });
  }
}
