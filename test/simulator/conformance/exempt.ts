/** Captures that no server can be held against, and why. */
export const EXEMPT: Readonly<Record<string, string>> = {};
