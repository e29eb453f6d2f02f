/** Problems of a config in the words of its author: where it is, and what must be true. Values are never repeated. */
import type { z } from 'zod';
import { knownKeysAt, nearestKey } from './configKeys.ts';

/** What is wrong at one place of a config. */
export interface Problem {
  path: readonly PropertyKey[];
  text: string;
}

/** `providers[0].proxmox.vmidRange.min: must be below max` */
export function formatProblem({ path, text }: Problem): string {
  return path.length === 0 ? `the file ${text}` : `${formatPath(path)}: ${text}`;
}

/** The issues of a strict schema as problems; one unknown key is one problem. `value` is what was parsed. */
export function problemsOf(schema: z.ZodType, value: unknown, error: z.ZodError): Problem[] {
  return error.issues.flatMap((issue): Problem[] => {
    if (issue.code !== 'unrecognized_keys') {
      return [{ path: issue.path, text: sentence(issue, valueAt(value, issue.path)) }];
    }
    const known = knownKeysAt(schema, issue.path);
    return issue.keys.map((key) => ({ path: [...issue.path, key], text: unknownKey(key, known) }));
  });
}

function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestKey(key, known);
  if (nearest !== undefined) return `is not a known key; did you mean ${nearest}?`;
  return `is not a known key; known here: ${known.join(', ')}`;
}

function sentence(issue: z.core.$ZodIssue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue.expected, value);
    case 'too_small':
      return bound(issue.origin, 'at least', issue.minimum);
    case 'too_big':
      return bound(issue.origin, 'at most', issue.maximum);
    case 'invalid_value':
      if (value === undefined) return `is required; it must be ${oneOf(issue.values)}`;
      return `must be ${oneOf(issue.values)}`;
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'is not allowed as a key';
    default:
      return issue.message;
  }
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of keys to values',
  record: 'a mapping of keys to values',
};

function wrongType(expected: string, value: unknown): string {
  const wanted = typeWords[expected] ?? expected;
  if (value === undefined) return `is required; it must be ${wanted}`;
  if (value === null) return `has no value; give one (${wanted}) or remove the key`;
  if (expected === 'string' && typeof value !== 'object') return 'must be text; put it in quotes';
  if (expected !== 'array' && typeof value === 'string') return `must be ${wanted}, not text`;
  return `must be ${wanted}`;
}

function bound(origin: string, which: string, limit: number | bigint): string {
  if (origin === 'string')
    return which === 'at least' ? 'must not be empty' : `must have ${which} ${limit} characters`;
  if (origin === 'array') return `must list ${which} ${limit === 1 ? 'one' : limit}`;
  return `must be ${which} ${limit}`;
}

function oneOf(values: readonly unknown[]): string {
  return values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let here = value;
  for (const segment of path) {
    if (typeof here !== 'object' || here === null) return undefined;
    here = Reflect.get(here, segment);
  }
  return here;
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`;
    const key = String(segment);
    if (!mayBeShown(key)) return `${text}[a key that is not shown]`;
    if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

const secretLike = /[!=]|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}|[A-Za-z0-9_-]{33,}/i;

/** A key that may be a misplaced token or password is not repeated. */
function mayBeShown(key: string): boolean {
  return key.length <= 63 && !secretLike.test(key);
}
