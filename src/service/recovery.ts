import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AUDIT_TARGET } from '../audit/audit-log.js';
import type { AuditFact, AuditRow } from '../audit/audit-row.js';
import type { RouteDecision } from '../contract/route.js';
import { readRowsBackward } from '../durable/rows.js';
import type { AcceptedRequest } from '../queue/queue.js';
import { acceptedFact, answeredFact, RunRecord } from './run-record.js';
import type { ServiceDeps } from './service-deps.js';
import { CALLER_DIED, terminalOf } from './terminal.js';

/**
 * Deals with the runs that a dead daemon left begun: first their processes, then their facts. A run that has its
 * terminal fact already only gets what follows from it; the others get `caller_died`, or are given back in `again`
 * when their request says `retry: "on-crash"`.
 */
export async function recoverRuns(deps: ServiceDeps): Promise<{ again: AcceptedRequest[] }> {
  const leases = await deps.lifecycle.recover();
  const unclean = new Set(leases.filter((lease) => lease.outcome !== 'completed').map((lease) => lease.operation?.id));
  for (const lease of leases) {
    if (lease.outcome !== 'completed') deps.log.error({ lease }, 'processes of a dead daemon may be left');
  }
  const audited = await auditOpenRequests(deps);
  const again: AcceptedRequest[] = [];
  for (const entry of deps.queue.running()) {
    const session = await deps.sessions.open(entry.agent, entry.session);
    const record = new RunRecord(entry, session, deps.journal, deps.queue);
    const written = await session.terminalOf(record.run);
    const empty = !unclean.has(record.run);
    if (written === undefined && empty && entry.request.retry === 'on-crash') {
      again.push(entry);
      continue;
    }
    const route = await readRoute(join(session.directory, 'runs', record.run, 'route.json'));
    if (route !== undefined) record.recallRoute(route);
    const terminal = written?.terminal ?? terminalOf(CALLER_DIED, { empty }, 0);
    if (written === undefined) record.terminal(terminal);
    const fact = answeredFact(record, terminal);
    if (!audited.has(auditKey(fact))) deps.audit.append(fact);
    record.respond(terminal, written?.ts ?? new Date().toISOString());
    deps.log.warn(fact, 'run of a dead daemon ended by recovery');
  }
  await deps.journal.durable();
  return { again };
}

/**
 * A crash may have come between the acceptance of a request and its audit row, or between an answer's audit row and
 * the end of the request: adds what is missing.
 *
 * @returns the rows that the open requests have
 */
async function auditOpenRequests({ queue, audit, journal }: ServiceDeps): Promise<Set<string>> {
  const open: AcceptedRequest[] = [...queue.pending(), ...queue.running()];
  const found = new Set<string>();
  if (open.length === 0) return found;
  const oldest = open.map(({ ts }) => ts).sort()[0] ?? '';
  for await (const value of readRowsBackward(journal.path(AUDIT_TARGET))) {
    const row = value as AuditRow;
    if (row.ts < oldest) break;
    found.add(auditKey(row));
  }
  for (const entry of open) {
    const fact = acceptedFact(entry);
    if (!found.has(auditKey(fact))) audit.append(fact);
  }
  return found;
}

function auditKey(fact: AuditFact | AuditRow): string {
  return JSON.stringify([fact.type, fact['agent'], fact['request']]);
}

async function readRoute(file: string): Promise<RouteDecision | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as RouteDecision;
  } catch (error) {
    // The run died before it was routed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
