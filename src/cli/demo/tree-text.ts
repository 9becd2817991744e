import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** What is below a directory, two spaces a level, directories with a slash, to the given depth. */
export async function treeText(directory: string, depth: number, indent = ''): Promise<string> {
  const entries = await readdir(directory, { withFileTypes: true });
  const lines: string[] = [];
  for (const entry of entries.sort((a, b) => a.name.localeCompare(b.name))) {
    if (!entry.isDirectory()) {
      lines.push(`${indent}${entry.name}\n`);
      continue;
    }
    const below = depth > 1 ? await treeText(join(directory, entry.name), depth - 1, `${indent}  `) : '';
    lines.push(`${indent}${entry.name}/\n${below}`);
  }
  return lines.join('');
}
