import { join } from 'node:path';
import { describeConformance } from './conformance.js';
import { fixtures, harness, recording } from './workbench.js';

const nowhere = { path: '/nonexistent', env: {} };

describeConformance({ name: 'echo', good: () => harness('echo', nowhere) });

describeConformance({
  name: 'script',
  good: (bench) => bench.replaying('script', { REPLAY_FILE: join(fixtures, 'streams', 'script', 'text.jsonl') }),
  hanging: (bench) => bench.replaying('script', { REPLAY_HANG: 'before' }),
  missing: () => harness('script', { ...nowhere, script: { program: '/nonexistent/script' } }),
});

for (const name of ['codex', 'pi'] as const) {
  describeConformance({
    name,
    good: (bench) => bench.replaying(name, { REPLAY_FILE: recording(name, 'text') }),
    hanging: (bench) => bench.replaying(name, { REPLAY_HANG: 'before' }),
    missing: () => harness(name, nowhere),
  });
}
