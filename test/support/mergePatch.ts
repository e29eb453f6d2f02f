/** JSON merge patches as a Kubernetes API server applies them. Nothing of ours is imported. */

export type Json = Record<string, unknown>;

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch;
  const result: Json = isJson(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** Empty for what is no object. */
export function asJson(value: unknown): Json {
  return isJson(value) ? value : {};
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
