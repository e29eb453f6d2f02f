/** Stands in for `node:test` while titles are collected: what is to be run is written down, and never run. */
import { between } from './titles.ts';

type Body = () => unknown;

let titles: string[] = [];
let around: string[] = [];
let pending: Promise<unknown>[] = [];

/** Forgets what was recorded. */
export function begin(): void {
  [titles, around, pending] = [[], [], []];
}

/** Full titles since `begin`, in order. */
export async function recorded(): Promise<string[]> {
  await Promise.all(pending);
  return titles;
}

function noteTest(title: string, ..._rest: readonly unknown[]): void {
  titles.push([...around, title].join(between));
}

function noteSuite(title: string, ...rest: readonly unknown[]): void {
  const body = rest.find((argument): argument is Body => typeof argument === 'function');
  around.push(title);
  pending.push(Promise.resolve(body?.()));
  around.pop();
}

function ignore(..._rest: readonly unknown[]): void {}

export const it: typeof noteTest = noteTest;
export const test: typeof noteTest = noteTest;
export const describe: typeof noteSuite = noteSuite;
export const suite: typeof noteSuite = noteSuite;
export const before: typeof ignore = ignore;
export const after: typeof ignore = ignore;
export const beforeEach: typeof ignore = ignore;
export const afterEach: typeof ignore = ignore;

/** What a file under test may import besides: it is not called while titles are collected. */
const real = process.getBuiltinModule('node:test');
export const run: typeof real.run = real.run;
export const mock: typeof real.mock = real.mock;
