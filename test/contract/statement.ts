/**
 * What the specification of the Proxmox provider states, and how we know that it holds. The page is not part of this
 * repository: a statement is told in our own words and keyed by the line of the page that it begins on.
 */

/** A test, or a `describe` that stands for all tests in it. */
export interface TestRef {
  /** Test file, relative to the checkout. */
  file: string;
  /** Title of a test or of a `describe`; with ` › ` between the titles of what it stands in, where one is not enough. */
  title: string;
}

/** Why a statement holds, what holds instead, or why it is not ours. */
export type Proof =
  /** The tests that fail when the statement is untrue. */
  | { kind: 'proven'; tests: readonly TestRef[] }
  /** What we do instead, where that was settled (a section of the design, a capture, a decision), and its tests. */
  | { kind: 'changed'; instead: string; source: string; tests: readonly TestRef[] }
  | { kind: 'nonGoal'; why: string };

export interface Statement {
  /** Line of the page on which it begins. */
  line: number;
  /** Line on which it ends; the same one when absent. */
  to?: number;
  /** In our own words. */
  statement: string;
  proof: Proof;
}

/** Lines that state nothing that can be checked, and what they are. */
export interface Quiet {
  line: number;
  to?: number;
  what: string;
}

export interface Section {
  /** Heading of the page. */
  title: string;
  /** Its first and last line; sections follow each other without a gap. */
  from: number;
  to: number;
  statements: readonly Statement[];
  quiet: readonly Quiet[];
}

/** Tests of one file, by their titles: `testsIn('test/unit/placement.test.ts', 'a title', 'another')`. */
export function testsIn(file: string, ...titles: readonly string[]): TestRef[] {
  return titles.map((title) => ({ file, title }));
}

/** These tests fail when the statement is untrue. */
export function proven(...tests: readonly (readonly TestRef[])[]): Proof {
  return { kind: 'proven', tests: tests.flat() };
}

/** We do something else, on purpose. */
export function changed(
  instead: string,
  source: string,
  ...tests: readonly (readonly TestRef[])[]
): Proof {
  return { kind: 'changed', instead, source, tests: tests.flat() };
}

/** Does not apply to us, or is something we leave to the reader. */
export function nonGoal(why: string): Proof {
  return { kind: 'nonGoal', why };
}
