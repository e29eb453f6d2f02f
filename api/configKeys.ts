/** The keys a strict schema knows: for «did you mean» in its problems and for the table in docs/configuration.md. */
import { z } from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;
type Member = z.core.JSONSchema._JSONSchema;

/** One key of a config as the documentation shows it. */
export interface ConfigKey {
  /** Dotted, with `[]` for the members of a list and `<key>` for freely chosen keys. */
  path: string;
  required: boolean;
  /** `undefined` when there is none. */
  default: unknown;
  description: string;
}

/** Every leaf of the schema, and every list of plain values, in the order of the schema. */
export function configKeys(schema: z.ZodType): ConfigKey[] {
  return keysBelow(jsonSchema(schema), '');
}

/** Keys that may stand at `path` (names and list positions); `[]` when the schema leaves them open. */
export function knownKeysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let here: JsonSchema | undefined = jsonSchema(schema);
  for (const segment of path) here = here && memberOf(here, segment);
  return Object.keys(here?.properties ?? {});
}

/** The known key that was probably meant: same letters, a part of it, or at most a third of it mistyped. */
export function nearestKey(written: string, known: readonly string[]): string | undefined {
  const wanted = written.toLowerCase();
  const ranked = known
    .map((key) => ({ key, distance: keyDistance(wanted, key.toLowerCase()) }))
    .filter(({ key, distance }) => distance <= Math.max(1, Math.floor(key.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.key;
}

function keyDistance(a: string, b: string): number {
  // «token» for «tokenFile», «vlan» for «vlanTag»: one is the beginning of the other.
  if (Math.min(a.length, b.length) >= 3 && (a.startsWith(b) || b.startsWith(a))) return 1;
  return editDistance(a, b);
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [index, letter] of Array.from(a).entries()) {
    const next = [index + 1];
    for (const [column, other] of Array.from(b).entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

function jsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: 'input' });
}

function memberOf(schema: JsonSchema, segment: PropertyKey): JsonSchema | undefined {
  if (typeof segment === 'number') return schemaOrNone(schema.items);
  const named = schema.properties?.[String(segment)];
  return schemaOrNone(named ?? schema.additionalProperties);
}

function schemaOrNone(value: Member | Member[] | undefined): JsonSchema | undefined {
  return typeof value === 'object' && !Array.isArray(value) ? value : undefined;
}

function keysBelow(schema: JsonSchema, path: string): ConfigKey[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    keysOf(schemaOrNone(member) ?? {}, path === '' ? name : `${path}.${name}`, required.has(name)),
  );
}

function keysOf(schema: JsonSchema, path: string, required: boolean): ConfigKey[] {
  const inner: [JsonSchema | undefined, string][] = [
    [schema, path],
    [schemaOrNone(schema.items), `${path}[]`],
    [schemaOrNone(schema.additionalProperties), `${path}.<key>`],
  ];
  for (const [holder, holderPath] of inner) {
    if (holder?.properties !== undefined) return keysBelow(holder, holderPath);
  }
  const { default: value, description = '' } = schema;
  return [{ path, required, default: value, description }];
}
