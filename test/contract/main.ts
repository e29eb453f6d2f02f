/**
 * `npm run contract [-- --open] [-- --page <file>]`: the contract with Proxmox VE, statement by statement. `--open` lists what
 * does not hold yet only; `--page` takes the specification itself and lists its lines that no entry speaks of.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { counts, table, uncovered } from './report.ts';
import { sections } from './sections.ts';

const { values } = parseArgs({
  options: { open: { type: 'boolean', default: false }, page: { type: 'string' } },
});
const lines = [
  table(sections, values.open),
  '',
  counts(sections.flatMap(({ statements }) => statements)),
];
if (values.page !== undefined) {
  const missing = uncovered(readFileSync(values.page, 'utf8'), sections);
  lines.push('', `${missing.length} lines of the page that no entry speaks of`);
  lines.push(...missing.map(({ line, text }) => `${String(line).padStart(9)}  ${text}`));
}
process.stdout.write(`${lines.join('\n')}\n`);
