import type { Section } from '../statement.ts';

/** *Placement*, lines 255 to 281 of the page. */
export const placement: Section = {
  title: 'Placement',
  from: 255,
  to: 281,
  statements: [],
  quiet: [],
};
