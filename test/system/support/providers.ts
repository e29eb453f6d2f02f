/** Providers that reach the one simulated cluster in different ways, most of them wrong at first. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { newCa } from '../../simulator/certificates.ts';
import { edited } from './config.ts';
import type { SystemStack } from './stack.ts';

/** The second token of the fixture `local.yaml`; requests made with it can be told from all others. */
export const secondToken = {
  id: 'admin@pve!admin',
  line: 'admin@pve!admin=00000000-0000-4000-8000-000000000002',
};
/** Content that is no token, and must not be repeated anywhere. */
export const malformedToken = 'admin@pve!admin 00000000-0000-4000-8000-0000CANARY01';
const names = ['no-token', 'malformed-token', 'wrong-ca', 'rotating', 'far-away'] as const;
export type ProviderName = (typeof names)[number];

export interface ProviderFiles {
  tokenFile(provider: ProviderName): string;
  caFile(provider: ProviderName): string;
}

export function filesOf(stack: SystemStack): ProviderFiles {
  return filesIn(join(stack.folder.path, 'simulator'));
}

function filesIn(folder: string): ProviderFiles {
  return {
    tokenFile: (provider) => join(folder, `token-${provider}`),
    caFile: (provider) => join(folder, `ca-${provider}.pem`),
  };
}

/** For the option `providersConfig`: the stack's provider, and one of each name beside it. `farPort` leads to `far-away`. */
export async function withProviders(farPort: number): Promise<(text: string) => string> {
  const otherCa = await newCa('Another CA', 1);
  return edited(({ providers }) => {
    const [home] = providers;
    if (home === undefined) throw new Error('the stack has no provider');
    Object.assign(home.proxmox, { maxClones: 20, maxDestroys: 20 });
    const token = String(home.proxmox['tokenFile']);
    const ca = String(home.proxmox['caFile']);
    const files = filesIn(dirname(token));
    for (const name of names) {
      const tokenFile = files.tokenFile(name);
      const caFile = files.caFile(name);
      if (name !== 'no-token') copyFileSync(token, tokenFile);
      copyFileSync(ca, caFile);
      const proxmox = { ...home.proxmox, tokenFile, caFile };
      if (name === 'far-away') Object.assign(proxmox, { url: `https://127.0.0.1:${farPort}` });
      providers.push({ name, type: 'proxmox', proxmox });
    }
    writeFileSync(files.tokenFile('malformed-token'), malformedToken);
    writeFileSync(files.caFile('wrong-ca'), otherCa.pem);
  });
}
