import type { Section } from '../statement.ts';
import { aboutTheConfig } from './clusterSetupConfig.ts';
import { aboutTheSecret } from './clusterSetupSecret.ts';

/** *Cluster-side setup*, lines 136 to 229 of the page. */
export const clusterSetup: Section = {
  title: 'Cluster-side setup',
  from: 136,
  to: 229,
  statements: [...aboutTheSecret, ...aboutTheConfig],
  quiet: [
    { line: 136, what: 'heading' },
    { line: 141, what: 'fence' },
  ],
};
