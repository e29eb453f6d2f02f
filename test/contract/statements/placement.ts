import type { Section } from '../statement.ts';
import { aboutPlacement } from './placementValues.ts';

/** *Placement*, lines 255 to 281 of the page. */
export const placement: Section = {
  title: 'Placement',
  from: 255,
  to: 281,
  statements: [...aboutPlacement],
  quiet: [
    { line: 255, what: 'heading' },
    { line: 261, to: 262, what: 'head of the table' },
  ],
};
