import type { Section } from '../statement.ts';
import { aboutConfigWrite } from './landingConfig.ts';
import { aboutDeletion } from './landingDelete.ts';
import { aboutIdentity } from './landingIdentity.ts';
import { aboutObjects } from './landingObjects.ts';
import { aboutOwnership } from './landingOwnership.ts';
import { aboutRetries } from './landingRetries.ts';
import { aboutSeeds } from './landingSeed.ts';

/** *What lands on Proxmox*, lines 282 to 406 of the page. */
export const landing: Section = {
  title: 'What lands on Proxmox',
  from: 282,
  to: 406,
  statements: [
    ...aboutObjects,
    ...aboutOwnership,
    ...aboutIdentity,
    ...aboutConfigWrite,
    ...aboutSeeds,
    ...aboutRetries,
    ...aboutDeletion,
  ],
  quiet: [
    { line: 282, to: 287, what: 'heading and head of the table' },
    { line: 321, what: 'fence' },
    { line: 325, what: 'fence' },
    { line: 335, to: 336, what: 'head of the table' },
  ],
};
