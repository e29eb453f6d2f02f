/** When each address is probed: at once when it appears, then as told, never twice at the same time. No clock, no I/O. */

interface Turn {
  dueMs: number;
  underWay: boolean;
}

export class ProbeSchedule {
  readonly #turns = new Map<string, Turn>();

  /** Keys to probe from now on: new ones are due at once, missing ones are forgotten. Returns the new ones. */
  keep(keys: Iterable<string>, nowMs: number): string[] {
    const wanted = new Set(keys);
    for (const key of this.#turns.keys()) if (!wanted.has(key)) this.#turns.delete(key);
    const added = [...wanted].filter((key) => !this.#turns.has(key));
    for (const key of added) this.#turns.set(key, { dueMs: nowMs, underWay: false });
    return added;
  }

  /** Up to `atMost` keys whose turn has come, longest overdue first; they are under way from now on. */
  take(nowMs: number, atMost: number): string[] {
    const due = [...this.#turns]
      .filter(([, { dueMs, underWay }]) => !underWay && dueMs <= nowMs)
      .sort(([, a], [, b]) => a.dueMs - b.dueMs)
      .slice(0, Math.max(0, atMost));
    for (const [, turn] of due) turn.underWay = true;
    return due.map(([key]) => key);
  }

  /** A probe has ended; the next one is due at `dueMs`. */
  ended(key: string, dueMs: number): void {
    const turn = this.#turns.get(key);
    if (turn === undefined) return;
    turn.dueMs = dueMs;
    turn.underWay = false;
  }

  /** When the next turn comes (epoch ms), `Infinity` when none is waiting. */
  nextDueMs(): number {
    let next = Infinity;
    for (const { dueMs, underWay } of this.#turns.values()) {
      if (!underWay) next = Math.min(next, dueMs);
    }
    return next;
  }
}
