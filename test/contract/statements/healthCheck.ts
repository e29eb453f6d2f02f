import type { Section } from '../statement.ts';

/** *Health check*, lines 503 to 544 of the page. */
export const healthCheck: Section = {
  title: 'Health check',
  from: 503,
  to: 544,
  statements: [],
  quiet: [],
};
