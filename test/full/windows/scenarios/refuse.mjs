/** Starts that fail before a program runs. */
import { join } from 'node:path';
import {
  failure,
  helperSpec,
  livingProcesses,
  makeLifecycle,
  newProcesses,
  OPERATION,
  records,
  report,
  runInLease,
  workFolder,
} from './support.mjs';

const before = livingProcesses();
const lifecycle = makeLifecycle();
const attempt = (change) => failure(lifecycle.lease(OPERATION).launcher.launch({ ...helperSpec('job'), ...change }));

const unsupported = {
  terminal: await attempt({ terminal: { rows: 24, columns: 80 } }),
  credentials: await attempt({ credentials: { uid: 1, gid: 1, groups: [] } }),
  rlimits: await attempt({ rlimits: { nofile: 10 } }),
  noNewPrivileges: await attempt({ noNewPrivileges: true }),
  paths: await attempt({ paths: { readOnly: [], readWrite: [] } }),
};
const refused = {
  missing: await attempt({ argv: [join(workFolder, 'missing.exe')] }),
  directory: await attempt({ cwd: join(workFolder, 'missing') }),
  batch: await attempt({ argv: [join(workFolder, 'run.CMD .')] }),
  twice: await attempt({ env: { Name: '1', NAME: '2' } }),
};
const limited = await runInLease(lifecycle, { ...helperSpec('job'), limits: { memoryBytes: 1 << 30, cpus: 1 } });
report({
  unsupported,
  refused,
  notEnforced: limited.notEnforced,
  strength: lifecycle.strength,
  left: newProcesses(before),
  records: records(),
});
