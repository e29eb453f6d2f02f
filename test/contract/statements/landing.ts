import type { Section } from '../statement.ts';

/** *What lands on Proxmox*, lines 282 to 406 of the page. */
export const landing: Section = {
  title: 'What lands on Proxmox',
  from: 282,
  to: 406,
  statements: [],
  quiet: [],
};
