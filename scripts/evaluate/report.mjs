/**
 * @typedef {object} Report
 * @property {boolean} green
 * @property {string} made ISO time
 * @property {Record<string, string | number | boolean | null>} environment
 * @property {{ requirements: number, proven: number, full: number, red: number, tests: number, passed: number, failed: number, skipped: number }} counts
 * @property {string[]} problems
 * @property {import('./judge.mjs').Row[]} requirements
 * @property {string[]} logs raw logs and results, relative to the root
 */

/** @param {Report} report @returns {string} Markdown */
export function toMarkdown(report) {
  const { counts } = report;
  const lines = [
    `# Evidence: ${report.green ? 'green' : 'RED'}`,
    '',
    `${counts.requirements} requirements: ${counts.proven} proven, ${counts.full} left to the full tests, ${counts.red} red. ` +
      `${counts.tests} tests: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped.`,
    '',
    ...section('Problems', report.problems),
    '## Environment',
    '',
    '| | |',
    '|---|---|',
    ...Object.entries(report.environment).map(([name, value]) => `| ${name} | ${cell(String(value))} |`),
    '',
    ...section('Raw results and logs', report.logs),
    '## Requirements',
    '',
    '| id | verdict | requirement | tests |',
    '|---|---|---|---|',
    ...report.requirements.map(
      (row) => `| ${row.id} | ${row.verdict} | ${cell(row.text)} | ${row.tests.map(testCell).join('<br>')} |`,
    ),
    '',
  ];
  return lines.join('\n');
}

/** @param {string} title @param {readonly string[]} items */
function section(title, items) {
  return items.length === 0 ? [] : [`## ${title}`, '', ...items.map((item) => `- ${item}`), ''];
}

/** @param {import('./results.mjs').TestOutcome} test */
const testCell = (test) => `${test.status}: ${cell(test.title)} (${test.file}, ${test.milliseconds} ms)`;

/** @param {string} text */
const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
