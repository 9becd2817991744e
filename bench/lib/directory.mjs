// Fresh directories for benchmarks.
import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Below build/, which is a real disk, unlike a tmpfs. The caller removes it. */
export async function benchDirectory() {
  await mkdir(join(ROOT, 'build'), { recursive: true });
  return await mkdtemp(join(ROOT, 'build', 'bench-'));
}
