import type { Section } from '../statement.ts';

/** *Proxmox prerequisites*, lines 21 to 135 of the page. */
export const prerequisites: Section = {
  title: 'Proxmox prerequisites',
  from: 21,
  to: 135,
  statements: [],
  quiet: [],
};
