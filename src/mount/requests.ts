import { constants } from 'node:os';
import { BridleError, toBridleError } from '../contract/errors.js';
import type { FuseSession, MountRequest } from '../native/fuse.js';
import type { Service } from '../service/service.js';
import { ROOT } from './inodes.js';
import type { Projection } from './projection.js';

/**
 * Answers what only JavaScript can decide: hand-offs, new agents, control writes, and fsync of an inbox. Every request
 * is answered once; what is thrown on the way becomes the errno of its error.
 */
export class RequestHandler {
  readonly #service: Service;
  readonly #projection: Projection;
  readonly #onInternal: (error: Error) => void;

  constructor(service: Service, projection: Projection, onInternal: (error: Error) => void) {
    this.#service = service;
    this.#projection = projection;
    this.#onInternal = onInternal;
  }

  async handle(request: MountRequest, session: FuseSession): Promise<void> {
    let errno = 0;
    let afterwards: (() => void) | undefined;
    try {
      afterwards = (await this.#decide(request)) ?? undefined;
    } catch (thrown) {
      const error = toBridleError(thrown);
      if (error.code === 'INTERNAL') this.#onInternal(error);
      errno = errnoNumber(error.errno);
    }
    session.answer(request.token, errno);
    afterwards?.();
  }

  /**
   * Only fsync waits; the others are decided before this returns, since their caller holds a kernel lock.
   * @returns what is left to do once the answer is given
   */
  #decide(request: MountRequest): Promise<void> | (() => void) | undefined {
    switch (request.op) {
      case 'handoff':
        return this.#handoff(request);
      case 'mkdir':
        this.#mkdir(request);
        return undefined;
      case 'control':
        this.#control(request);
        return undefined;
      case 'fsync':
        return this.#service.durable();
    }
  }

  #handoff(request: Extract<MountRequest, { op: 'handoff' }>): (() => void) | undefined {
    const place = this.#projection.find(request.inbox);
    if (place === undefined) throw new Error(`no inbox has inode ${request.inbox}`);
    try {
      const state = this.#service.accept(place.agent, request.name, request.bytes, request);
      // A replay of what was answered long ago: the rename that is about to happen must not leave the file for ever.
      return state === 'answered' ? () => this.#projection.settled(place.agent, request.name) : undefined;
    } catch (thrown) {
      const error = toBridleError(thrown);
      this.#projection.refused(place.agent, request.name, error);
      throw error;
    }
  }

  #mkdir(request: Extract<MountRequest, { op: 'mkdir' }>): void {
    if (request.parent !== ROOT.agents) throw new BridleError('READ_ONLY', 'directories are made under agents/ only');
    this.#service.createAgent(request.name, request);
  }

  #control(request: Extract<MountRequest, { op: 'control' }>): void {
    const place = this.#projection.find(request.inode);
    if (place === undefined || place.part === 'inbox') throw new Error(`no control has inode ${request.inode}`);
    this.#service.setControl(place.agent, place.part, request.bytes, request);
  }
}

function errnoNumber(name: string): number {
  return (constants.errno as Record<string, number>)[name] ?? constants.errno.EIO;
}
