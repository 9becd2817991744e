import type { Logger } from 'pino';
import type { AuditLog } from '../audit/audit-log.js';
import type { Harness } from '../contract/harness.js';
import type { Journal } from '../durable/journal.js';
import type { Lifecycle } from '../lifecycle/lifecycle.js';
import type { Queue } from '../queue/queue.js';
import type { SessionStore } from '../sessions/session-store.js';
import type { Agents } from './agents.js';

export interface ServiceDeps {
  readonly stateDir: string;
  readonly journal: Journal;
  readonly queue: Queue;
  readonly sessions: SessionStore;
  readonly audit: AuditLog;
  readonly agents: Agents;
  readonly lifecycle: Lifecycle;
  readonly harnesses: ReadonlyMap<string, Harness>;
  readonly log: Logger;
  /** Runs at once. */
  readonly maxRuns: number;
  /** Nothing can be recorded any more: the daemon must end. */
  readonly onFatal: (error: Error) => void;
}
