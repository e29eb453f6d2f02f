/**
 * `npm run contract [-- --only <kind>] [-- --page <file>]`: the contract with Proxmox VE, statement by statement. `--only`
 * takes proven, changed or nonGoal; `--page` takes the specification itself and lists its lines that no entry speaks of.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { counts, table, uncovered } from './report.ts';
import { sections } from './sections.ts';

const { values } = parseArgs({ options: { only: { type: 'string' }, page: { type: 'string' } } });
const only = z.enum(['proven', 'changed', 'nonGoal']).optional().parse(values.only);
const lines = [table(sections, only), '', counts(sections.flatMap(({ statements }) => statements))];
if (values.page !== undefined) {
  const missing = uncovered(readFileSync(values.page, 'utf8'), sections);
  lines.push('', `${missing.length} lines of the page that no entry speaks of`);
  lines.push(...missing.map(({ line, text }) => `${String(line).padStart(9)}  ${text}`));
}
process.stdout.write(`${lines.join('\n')}\n`);
