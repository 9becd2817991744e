import { Socket } from 'node:net';
import { Deferred } from '../deferred.js';
import type { StartFailure } from '../platform.js';
import { ReportDecoder } from './protocol.js';

const GO = Buffer.of(1);

export type StartAnswer = { readonly kind: 'started' } | StartFailure;

/**
 * What a child waits at, and answers through: it executes its program, which closes its end, or it reports why it could
 * not. Nobody else stands between, so nobody else has to be awake for a start.
 */
export class Gate {
  readonly #socket: Socket;
  readonly #decoder = new ReportDecoder();
  readonly #answer = new Deferred<StartAnswer>();
  #opened = false;

  /** @param fd our end of the socket; taken over */
  constructor(fd: number) {
    this.#socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
    this.#socket.on('data', (chunk) => this.#take(chunk));
    this.#socket.on('end', () => this.#end());
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#fail('gate', error.code ?? error.message));
    this.#socket.on('close', () => this.#end());
  }

  /** Never rejects. A child that was killed between the opening and the execution looks like one that started. */
  get answer(): Promise<StartAnswer> {
    return this.#answer.promise;
  }

  open(): void {
    this.#opened = true;
    if (this.#socket.writable) this.#socket.write(GO);
  }

  /** Sends a child away that still waits. */
  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    try {
      for (const report of this.#decoder.push(chunk)) {
        if (report.kind === 'failed') this.#fail(report.step, report.errno);
      }
    } catch (error) {
      this.#fail('protocol', (error as Error).message);
    }
  }

  #end(): void {
    if (this.#opened) this.#answer.resolve({ kind: 'started' });
    else this.#fail('gate', 'the child ended before it executed its program');
    this.#socket.destroy();
  }

  #fail(step: string, reason: string): void {
    this.#answer.resolve({ kind: 'failed', step, reason });
  }
}
