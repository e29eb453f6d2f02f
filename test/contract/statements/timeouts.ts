import type { Section } from '../statement.ts';

/** *Timeouts*, lines 472 to 502 of the page. */
export const timeouts: Section = {
  title: 'Timeouts',
  from: 472,
  to: 502,
  statements: [],
  quiet: [],
};
