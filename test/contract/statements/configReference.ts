import type { Section } from '../statement.ts';
import { aboutReach } from './configReferenceReach.ts';
import { aboutVms } from './configReferenceVms.ts';

/** *Config reference*, lines 230 to 254 of the page. */
export const configReference: Section = {
  title: 'Config reference',
  from: 230,
  to: 254,
  statements: [...aboutReach, ...aboutVms],
  quiet: [
    { line: 230, what: 'heading' },
    { line: 237, to: 238, what: 'head of the table' },
  ],
};
