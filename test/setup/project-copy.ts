import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const project = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

const copied = [
  ...['scripts', 'src', 'native', 'dist', 'build/Release'],
  ...['package.json', 'package-lock.json', 'CMakeLists.txt', 'binding.gyp', 'tsconfig.json'],
];

/** A copy of the project with its results, in a new temporary directory; node_modules is a link to the original. */
export class ProjectCopy implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), 'copy-'));

  constructor() {
    for (const part of copied) {
      // Times are not kept: a copy looks as new as a checkout.
      if (existsSync(join(project, part))) cpSync(join(project, part), join(this.root, part), { recursive: true });
    }
    symlinkSync(join(project, 'node_modules'), join(this.root, 'node_modules'));
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
