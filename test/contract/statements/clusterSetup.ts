import type { Section } from '../statement.ts';

/** *Cluster-side setup*, lines 136 to 229 of the page. */
export const clusterSetup: Section = {
  title: 'Cluster-side setup',
  from: 136,
  to: 229,
  statements: [],
  quiet: [],
};
