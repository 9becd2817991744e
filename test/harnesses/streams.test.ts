import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { HarnessEvent } from '../../src/contract/events.js';
import { UNKNOWN_USAGE } from '../../src/contract/terminal.js';
import { CodexStream } from '../../src/harnesses/codex/stream.js';
import { JsonLines } from '../../src/harnesses/jsonl.js';
import { PiStream } from '../../src/harnesses/pi/stream.js';
import type { Conclusion, LiveEvent, StreamMapper } from '../../src/harnesses/process-run.js';
import { recording } from './workbench.js';

const SCENARIOS = [
  'text',
  'tool',
  'failing-tool',
  'status-401',
  'status-429',
  'status-500',
  'once-500',
  'cut',
] as const;

const mappers: Record<'codex' | 'pi', () => StreamMapper> = {
  codex: () => new CodexStream('asked-for'),
  pi: () => new PiStream(),
};

interface Replayed {
  readonly events: LiveEvent[];
  readonly conclusion: Conclusion;
  readonly settled: boolean;
}

function replay(mapper: StreamMapper, bytes: Uint8Array, size: number): Replayed {
  const lines = new JsonLines();
  const events: LiveEvent[] = [];
  for (let start = 0; start < bytes.length; start += size) {
    for (const line of lines.push(bytes.subarray(start, start + size))) {
      if (line.kind === 'object') events.push(...mapper.map(line.value));
    }
  }
  return { events, conclusion: mapper.conclude(), settled: mapper.settled() };
}

function played(cli: 'codex' | 'pi', scenario: string, size = 1 << 20): Replayed {
  return replay(mappers[cli](), readFileSync(recording(cli, scenario)), size);
}

function mapAll(mapper: StreamMapper, natives: readonly Record<string, unknown>[]): LiveEvent[] {
  return natives.flatMap((native) => [...mapper.map(native)]);
}

const ofType = <T extends HarnessEvent['type']>(events: readonly LiveEvent[], type: T): LiveEvent[] =>
  events.filter((event) => event.type === type);

describe.each(['codex', 'pi'] as const)('recorded streams of %s', (cli) => {
  it.each(SCENARIOS)('HA-06 gives the same events of %s for every chunk size', (scenario) => {
    const whole = played(cli, scenario);
    for (const size of [1, 2, 7, 113, 4096]) expect(played(cli, scenario, size)).toEqual(whole);
  });

  it.each(SCENARIOS)('HA-07 knows every event of %s', (scenario) => {
    const unknown = played(cli, scenario).events.filter(
      (event) => event.type === 'notice' && /^(unknown|malformed) event/.test(event.message),
    );
    expect(unknown).toEqual([]);
  });

  it('HA-08 maps a plain answer', () => {
    const { events, conclusion, settled } = played(cli, 'text');
    const text = ofType(events, 'text').map((event) => (event.type === 'text' ? event.text : ''));
    expect(text.join('')).toBe('Hello from the provider double.');
    expect(conclusion).toMatchObject({ ok: true, text: 'Hello from the provider double.', failure: null });
    expect(settled).toBe(true);
  });

  it('HA-08 maps a tool call and its result under one call id', () => {
    const { events, conclusion } = played(cli, 'tool');
    const [call] = ofType(events, 'tool.call');
    const [result] = ofType(events, 'tool.result');
    expect(call).toMatchObject({ name: expect.stringMatching(/^(shell|bash)$/) });
    expect(JSON.stringify(call)).toContain('proof.txt');
    expect(result).toMatchObject({ ok: true, output: 'made\n', call: call?.type === 'tool.call' ? call.call : '' });
    expect(conclusion).toMatchObject({ ok: true, text: 'The tool said: made' });
  });

  it('HA-08 marks the result of a failing tool, in a run that is good', () => {
    const { events, conclusion } = played(cli, 'failing-tool');
    const [result] = ofType(events, 'tool.result');
    expect(result).toMatchObject({ ok: false, output: expect.stringContaining('to-no-avail') });
    expect(conclusion.ok).toBe(true);
  });

  it.each(['status-401', 'status-429', 'status-500', 'cut'])('HA-09 judges %s a failure, with a reason', (scenario) => {
    const { conclusion } = played(cli, scenario);
    expect(conclusion.ok).toBe(false);
    expect(conclusion.failure).toMatch(/\w/);
    expect(conclusion.usage).toEqual(UNKNOWN_USAGE);
  });

  it('HA-09 judges a run good that recovered from one error', () => {
    expect(played(cli, 'once-500').conclusion).toMatchObject({ ok: true, failure: null });
  });

  it('HA-09 judges every stream that was cut off before its end a failure', () => {
    const lines = readFileSync(recording(cli, 'text'), 'utf8').trimEnd().split('\n');
    for (let kept = 0; kept < lines.length; kept += 1) {
      const bytes = Buffer.from(lines.slice(0, kept).join('\n').concat('\n'));
      expect(replay(mappers[cli](), bytes, 4096).conclusion.ok).toBe(false);
    }
  });

  it('HA-07 keeps an event of an unknown type as a notice with the native event', () => {
    const native = { type: 'brand.new', detail: { a: 1 } };
    expect(mappers[cli]().map(native)).toEqual([{ type: 'notice', message: 'unknown event brand.new', native }]);
    expect(mappers[cli]().map({ no: 'type' })).toMatchObject([{ type: 'notice', native: { no: 'type' } }]);
  });

  it('HA-07 bounds what it keeps of a native event', () => {
    const huge = { type: 'brand.new', detail: 'x'.repeat(1_000_000) };
    expect(JSON.stringify(mappers[cli]().map(huge)).length).toBeLessThan(4096);
    let deep: unknown = 1;
    for (let level = 0; level < 5000; level += 1) deep = [deep];
    expect(mappers[cli]().map({ type: 'brand.new', deep })).toMatchObject([
      { native: { clipped: expect.any(String) } },
    ]);
  });
});

describe('codex', () => {
  const done = { type: 'turn.completed', usage: { input_tokens: 200, cached_input_tokens: 40, output_tokens: 24 } };

  it('HA-09 does not take an error item or an error line for a failed turn', () => {
    const mapper = new CodexStream(null);
    const events = mapAll(mapper, [
      { type: 'item.completed', item: { id: '0', type: 'error', message: 'a warning' } },
      { type: 'error', message: 'Reconnecting... 1/1' },
      { type: 'item.completed', item: { id: '1', type: 'agent_message', text: 'fine' } },
      done,
    ]);
    expect(ofType(events, 'notice')).toMatchObject([{ message: 'a warning' }, { message: 'Reconnecting... 1/1' }]);
    expect(mapper.conclude()).toMatchObject({ ok: true, text: 'fine', failure: null });
  });

  it('HA-10 reports usage as codex counts it, null where it says nothing, and no cost', () => {
    const { conclusion, events } = played('codex', 'tool');
    const usage = { inputTokens: 200, outputTokens: 24, cacheReadTokens: 40, cacheWriteTokens: 0, reasoningTokens: 8 };
    expect(conclusion).toMatchObject({ usage, cost: { usd: null, source: 'unknown' }, model: 'asked-for' });
    expect(ofType(events, 'usage')).toEqual([{ type: 'usage', usage, cost: { usd: null, source: 'unknown' } }]);
    const mapper = new CodexStream(null);
    mapper.map(done);
    expect(mapper.conclude().usage).toMatchObject({ cacheWriteTokens: null, reasoningTokens: null });
  });

  it('HA-08 maps file changes, MCP calls, searches, plans and reasoning', () => {
    const changes = [{ path: '/w/a', kind: 'add' }];
    const mcp = { id: '2', type: 'mcp_tool_call', server: 'files', tool: 'list', arguments: { dir: '/' } };
    const events = mapAll(new CodexStream(null), [
      { type: 'item.completed', item: { id: '1', type: 'file_change', changes, status: 'completed' } },
      { type: 'item.started', item: { ...mcp, status: 'in_progress' } },
      { type: 'item.completed', item: { ...mcp, error: { message: 'no such server' }, status: 'failed' } },
      { type: 'item.completed', item: { id: '3', type: 'web_search', query: 'bridles' } },
      { type: 'item.updated', item: { id: '4', type: 'todo_list', items: [{ text: 'look', completed: true }] } },
      { type: 'item.completed', item: { id: '5', type: 'reasoning', text: 'hm' } },
    ]);
    expect(events).toEqual([
      { type: 'tool.call', call: '1', name: 'apply_patch', input: { changes } },
      { type: 'tool.result', call: '1', name: 'apply_patch', ok: true, output: '', exitCode: null },
      { type: 'tool.call', call: '2', name: 'files.list', input: { dir: '/' } },
      { type: 'tool.result', call: '2', name: 'files.list', ok: false, output: 'no such server', exitCode: null },
      { type: 'tool.call', call: '3', name: 'web_search', input: { query: 'bridles' } },
      { type: 'tool.result', call: '3', name: 'web_search', ok: true, output: '', exitCode: null },
      { type: 'progress', message: '[x] look' },
      { type: 'reasoning', text: 'hm' },
    ]);
  });

  it('HA-07 keeps an item of an unknown type and marks one of the wrong shape', () => {
    const mapper = new CodexStream(null);
    const events = mapAll(mapper, [
      { type: 'item.completed', item: { id: '1', type: 'hologram' } },
      { type: 'item.completed', item: { id: '2', type: 'agent_message', text: 42 } },
      { type: 'turn.failed', error: 'no object' },
    ]);
    expect(events).toMatchObject([
      { message: expect.stringContaining('unknown event'), native: { item: { type: 'hologram' } } },
      { message: expect.stringContaining('malformed event') },
      { message: expect.stringContaining('malformed event') },
    ]);
    expect(mapper.conclude()).toMatchObject({ ok: false, failure: expect.stringMatching(/\w/) });
  });
});

describe('pi', () => {
  it('HA-10 counts cached input as input, adds up the messages and reports its cost', () => {
    const { conclusion } = played('pi', 'tool');
    expect(conclusion.usage).toEqual({
      inputTokens: 200,
      outputTokens: 24,
      cacheReadTokens: 40,
      cacheWriteTokens: 0,
      reasoningTokens: null,
    });
    expect(conclusion.cost).toMatchObject({ source: 'reported', usd: expect.closeTo(0.000_228, 9) });
    expect(conclusion.model).toBe('double/double-model');
  });

  it('HA-10 takes a price of zero and a usage of zeros for unknown', () => {
    const message = { role: 'assistant', content: 'hi', stopReason: 'stop' };
    const free = new PiStream();
    free.map({ type: 'message_end', message: { ...message, usage: { input: 5, output: 1, cost: { total: 0 } } } });
    expect(free.conclude()).toMatchObject({ usage: { inputTokens: 5 }, cost: { usd: null, source: 'unknown' } });
    const silent = new PiStream();
    silent.map({ type: 'message_end', message: { ...message, usage: { input: 0, output: 0, cost: { total: 0 } } } });
    expect(silent.conclude()).toMatchObject({ usage: UNKNOWN_USAGE, cost: { usd: null, source: 'unknown' } });
  });

  it('HA-09 is not at its end while it retries or compacts', () => {
    const mapper = new PiStream();
    mapper.map({ type: 'agent_end', messages: [] });
    expect(mapper.settled()).toBe(true);
    mapper.map({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 2000, errorMessage: 'busy' });
    expect(mapper.settled()).toBe(false);
    mapper.map({ type: 'agent_end', messages: [] });
    mapper.map({ type: 'compaction_start', reason: 'threshold' });
    expect(mapper.settled()).toBe(false);
  });

  it('HA-08 maps thinking to reasoning and says when an answer was cut off', () => {
    const events = mapAll(new PiStream(), [
      { type: 'message_update', assistantMessageEvent: { type: 'thinking_delta', delta: 'hm' } },
      { type: 'message_end', message: { role: 'assistant', content: [], stopReason: 'length' } },
      { type: 'message_end', message: { role: 'user', content: 'ignored' } },
    ]);
    expect(events).toEqual([
      { type: 'reasoning', text: 'hm' },
      { type: 'notice', message: 'the answer was cut off at the output limit of the model' },
    ]);
  });
});
