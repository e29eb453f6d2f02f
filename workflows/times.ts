/** Epoch ms as people read it: ISO 8601 to the second. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
