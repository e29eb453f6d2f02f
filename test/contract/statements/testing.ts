import type { Section } from '../statement.ts';

/** *Testing*, lines 638 to 647 of the page. */
export const testing: Section = {
  title: 'Testing',
  from: 638,
  to: 647,
  statements: [],
  quiet: [],
};
