import type { Section } from '../statement.ts';

/** *Config reference*, lines 230 to 254 of the page. */
export const configReference: Section = {
  title: 'Config reference',
  from: 230,
  to: 254,
  statements: [],
  quiet: [],
};
