import type { Section } from '../statement.ts';

/** *Logging*, lines 407 to 452 of the page. */
export const logging: Section = {
  title: 'Logging',
  from: 407,
  to: 452,
  statements: [],
  quiet: [],
};
