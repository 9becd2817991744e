import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { EventRow } from '../../src/contract/events.js';
import type { Response } from '../../src/contract/terminal.js';
import { rows, textOf } from './client.js';

interface AuditRow {
  readonly seq: number;
  readonly type: string;
  readonly request?: string;
}

/**
 * Checks the books after a load: every acknowledged id has one response with its own text or its own terminal fact,
 * events without gaps and with one terminal row, and its audit rows; nothing was answered twice.
 */
export async function expectAccountsInOrder(mount: string, agent: string, ids: readonly string[]): Promise<void> {
  expect(new Set(ids).size).toBe(ids.length);
  const directory = join(mount, 'agents', agent);
  for (const id of ids) {
    const response = JSON.parse(await textOf(join(directory, 'outbox', `${id}.resp.json`))) as Response;
    expect(response.id).toBe(id);
    if (response.outcome === 'success') expect(response.text).toBe(id);
    else expect(response).toMatchObject({ outcome: 'cancelled', cause: 'caller_died' });
    const events = await rows<EventRow>(join(directory, 'outbox', `${id}.events.jsonl`));
    expect(events.map((row) => row.seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.filter((row) => row.type === 'run.terminal')).toHaveLength(1);
  }

  const audit = await rows<AuditRow>(join(mount, 'audit.jsonl'));
  expect(audit.map((row) => row.seq)).toEqual(audit.map((_, index) => index + 1));
  const count = (type: string) => {
    const counts = new Map<string, number>();
    for (const row of audit) {
      if (row.type === type && row.request !== undefined) counts.set(row.request, (counts.get(row.request) ?? 0) + 1);
    }
    return counts;
  };
  const accepted = count('request.accepted');
  const answered = count('request.answered');
  for (const id of ids) expect([id, accepted.get(id), answered.get(id)]).toEqual([id, 1, 1]);
  expect((await readdir(join(directory, 'inbox'))).filter((name) => name.endsWith('.req.json'))).toEqual([]);
}
