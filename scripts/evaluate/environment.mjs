import { readFileSync } from 'node:fs';
import { arch, cpus, release, totalmem } from 'node:os';
import { filesBelow, fingerprint, readStamp } from '../lib/fingerprint.mjs';
import { run, which } from '../lib/run.mjs';

/** Hash of everything that decides what the tests mean: results of one tree say nothing of another. */
export const treeFingerprint = () =>
  fingerprint([
    'package-lock.json',
    'CMakeLists.txt',
    ...['src', 'native', 'spec', 'test', 'fixtures'].flatMap((folder) => filesBelow(folder)),
  ]);

/**
 * What the results were made on.
 * @returns {Promise<Record<string, string | number | boolean | null>>}
 */
export async function describeEnvironment() {
  const git = async (/** @type {string[]} */ ...args) => {
    if (which('git') === undefined) return null;
    const { code, output } = await run('git', args);
    return code === 0 ? output.trim() : null;
  };
  const status = await git('status', '--porcelain');
  const libfuse = which('pkg-config') === undefined ? null : await run('pkg-config', ['--modversion', 'fuse3']);
  return {
    commit: await git('rev-parse', 'HEAD'),
    dirty: status === null ? null : status !== '',
    node: process.version,
    platform: `${process.platform} ${arch()}`,
    kernel: release(),
    distribution: /^PRETTY_NAME="?(.*?)"?$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? null,
    cpu: cpus()[0]?.model ?? null,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    libfuse: libfuse?.code === 0 ? libfuse.output.trim() : null,
    uid: process.getuid?.() ?? null,
    native: readStamp('build/Release/.stamp') ?? null,
  };
}
