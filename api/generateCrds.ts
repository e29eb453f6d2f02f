/** `npm run generate:crds`: writes deploy/crds from the schemas in api/. */
import { writeFileSync } from 'node:fs';
import { crdFiles } from './crd.ts';

for (const { name, text } of crdFiles()) {
  writeFileSync(new URL(`../deploy/crds/${name}`, import.meta.url), text);
}
