import type { Section } from '../statement.ts';

/** *Tracing*, lines 453 to 471 of the page. */
export const tracing: Section = {
  title: 'Tracing',
  from: 453,
  to: 471,
  statements: [],
  quiet: [],
};
