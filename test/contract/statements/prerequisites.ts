import type { Section } from '../statement.ts';
import { aboutNetworks } from './prerequisitesNetwork.ts';
import { aboutRights } from './prerequisitesRights.ts';
import { aboutTemplates } from './prerequisitesTemplate.ts';

/** *Proxmox prerequisites*, lines 21 to 135 of the page. */
export const prerequisites: Section = {
  title: 'Proxmox prerequisites',
  from: 21,
  to: 135,
  statements: [...aboutTemplates, ...aboutRights, ...aboutNetworks],
  quiet: [
    { line: 21, to: 23, what: 'heading and lead-in' },
    { line: 44, what: 'blank' },
    { line: 50, what: 'blank' },
    { line: 69, to: 71, what: 'the command that makes such a storage' },
    { line: 82, what: 'fence' },
    { line: 89, what: 'fence' },
    { line: 135, what: 'blank' },
  ],
};
