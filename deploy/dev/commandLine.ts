/** Parsers for the options of our command-line programs: what does not fit ends the program with one sentence. */
import { InvalidArgumentError } from 'commander';

/** A whole number within both bounds. Throws what Commander shows after the name of the option. */
export function wholeNumber(min = 1, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^-?\d+$/.test(text) && value >= min && value <= max) return value;
    const from = min === Number.MIN_SAFE_INTEGER ? '' : `, at least ${min}`;
    const to = max === Number.MAX_SAFE_INTEGER ? '' : `, at most ${max}`;
    throw new InvalidArgumentError(`It must be a whole number${from}${to}.`);
  };
}

/** Whole numbers within both bounds, separated by commas. Throws like `wholeNumber`. */
export function wholeNumbers(min = 1, max = Number.MAX_SAFE_INTEGER): (text: string) => number[] {
  const one = wholeNumber(min, max);
  return (text) => text.split(',').map(one);
}

/** A number above 0, such as a factor. Throws like `wholeNumber`. */
export function factor(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0.');
}

/** A regular expression. Throws like `wholeNumber`. */
export function regularExpression(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch {
    throw new InvalidArgumentError('It must be a regular expression.');
  }
}
