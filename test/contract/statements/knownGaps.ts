import type { Section } from '../statement.ts';

/** *Known gaps*, lines 571 to 637 of the page. */
export const knownGaps: Section = {
  title: 'Known gaps',
  from: 571,
  to: 637,
  statements: [],
  quiet: [],
};
