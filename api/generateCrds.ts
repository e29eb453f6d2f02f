/** `npm run generate:crds`: writes deploy/crds from the schemas in api/. */
import { writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { crdFiles } from './crd.ts';

new Command('npm run generate:crds')
  .description('Writes deploy/crds from the schemas in api/.')
  .parse();

for (const { name, text } of crdFiles()) {
  writeFileSync(new URL(`../deploy/crds/${name}`, import.meta.url), text);
}
