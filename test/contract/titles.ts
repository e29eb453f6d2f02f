import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import { checkout } from '../support/pages.ts';

/** Between the titles of a test and of the `describe` it stands in. */
export const between = ' › ';

const titlesByFile = z.record(z.string(), z.array(z.string()));

/**
 * Full titles of all tests of these files, generated ones too: each file is loaded, in a process of its own, with a runner
 * that only writes down what it is told to run. Throws when a file cannot be loaded.
 */
export async function titlesOf(files: readonly string[]): Promise<Map<string, string[]>> {
  const collector = fileURLToPath(new URL('collectTitles.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [collector, ...files], {
    cwd: checkout,
    maxBuffer: 64 * 1024 * 1024,
  });
  return new Map(Object.entries(titlesByFile.parse(JSON.parse(stdout))));
}

/** Tests that a title of the contract stands for: one test, or all of one `describe`. Empty when there is none. */
export function testsNamed(title: string, titles: readonly string[]): string[] {
  const paths = new Set<string>();
  for (const full of titles) {
    const parts = full.split(between);
    for (let end = 1; end <= parts.length; end++) {
      const path = parts.slice(0, end).join(between);
      if (path === title || path.endsWith(between + title)) paths.add(path);
    }
  }
  return [...paths];
}
