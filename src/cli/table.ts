/** Rows in columns as wide as their widest cell; the last column is not padded. Ends with a newline. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const last = header.length - 1;
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => (column === last ? cell : cell.padEnd(widths[column] ?? 0))).join('  ');
  return `${all.map((row) => line(row).trimEnd()).join('\n')}\n`;
}
