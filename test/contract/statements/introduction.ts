import type { Section } from '../statement.ts';

/** *The proxmox provider*, lines 1 to 20 of the page. */
export const introduction: Section = {
  title: 'The proxmox provider',
  from: 1,
  to: 20,
  statements: [],
  quiet: [],
};
