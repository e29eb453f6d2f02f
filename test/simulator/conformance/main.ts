import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates } from '../certificates.ts';
import { runConformance } from './run.ts';

/** `npm run conformance -- <folder> [--list-differ] [--only <text>]`. */
async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const folder = args.find((arg) => !arg.startsWith('--')) ?? 'testdata/pve/9.2';
  const onlyAt = args.indexOf('--only');
  const only = onlyAt < 0 ? null : (args[onlyAt + 1] ?? null);
  const directory = mkdtempSync(join(tmpdir(), 'conformance-'));
  try {
    const verdicts = await runConformance(folder, await makeCertificates(directory));
    const shown = verdicts.filter(({ name }) => only === null || name.includes(only));
    if (args.includes('--list-differ') || only !== null) {
      for (const verdict of shown) {
        if (verdict.verdict !== 'differ') continue;
        process.stdout.write(`${verdict.name}\n`);
        for (const line of verdict.differences.slice(0, 8)) process.stdout.write(`    ${line}\n`);
      }
    }
    const exempt = verdicts.filter((verdict) => verdict.verdict === 'exempt');
    for (const verdict of exempt)
      process.stdout.write(`exempt ${verdict.name}: ${verdict.reason}\n`);
    const count = (kind: string): number =>
      verdicts.filter(({ verdict }) => verdict === kind).length;
    process.stdout.write(
      `${count('reproduced')} reproduced, ${count('differ')} differ, ${count('exempt')} exempt` +
        ' (reasons listed)\n',
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
