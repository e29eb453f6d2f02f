import type { Section } from '../statement.ts';

/** *Error classes*, lines 545 to 570 of the page. */
export const errorClasses: Section = {
  title: 'Error classes',
  from: 545,
  to: 570,
  statements: [],
  quiet: [],
};
