/** When each address is probed: as told, never twice at the same time, slow ones never at the cost of others. No clock, no I/O. */

interface Turn {
  dueMs: number;
  underWay: boolean;
  /** Its last probe took long: it shares the places that slow ones may take. */
  slow: boolean;
}

/** How many probes may start now: all in all, and slow ones among them. */
export interface Room {
  all: number;
  slow: number;
}

/** A turn that has come. */
export interface Taken {
  key: string;
  slow: boolean;
  /** Time since it was due (ms). */
  lateMs: number;
}

/** Turns by key, times in epoch ms; those of guest agents too (activities/watch). Whoever takes a turn must tell its end. */
export class ProbeSchedule {
  readonly #turns = new Map<string, Turn>();

  /** Keys to probe from now on: new ones are due at once, missing ones are forgotten. Returns the new ones. */
  keep(keys: Iterable<string>, nowMs: number): string[] {
    const wanted = new Set(keys);
    for (const key of this.#turns.keys()) if (!wanted.has(key)) this.#turns.delete(key);
    const added = [...wanted].filter((key) => !this.#turns.has(key));
    for (const key of added) this.#turns.set(key, { dueMs: nowMs, underWay: false, slow: false });
    return added;
  }

  /** Keys whose turn has come, longest overdue first, as far as there is room; they are under way from now on. */
  take(nowMs: number, room: Room): Taken[] {
    const due = [...this.#turns]
      .filter(([, { dueMs, underWay }]) => !underWay && dueMs <= nowMs)
      .sort(([, a], [, b]) => a.dueMs - b.dueMs);
    const left = { ...room };
    const taken: Taken[] = [];
    for (const [key, turn] of due) {
      if (left.all <= 0) break;
      if (turn.slow && left.slow <= 0) continue;
      left.all -= 1;
      if (turn.slow) left.slow -= 1;
      turn.underWay = true;
      taken.push({ key, slow: turn.slow, lateMs: nowMs - turn.dueMs });
    }
    return taken;
  }

  /** A probe has ended, or is not due yet; the next one is due at `dueMs`. `slow`: it took long. */
  ended(key: string, dueMs: number, slow = false): void {
    const turn = this.#turns.get(key);
    if (turn === undefined) return;
    Object.assign(turn, { dueMs, slow, underWay: false });
  }

  /** The address is to be probed at once; one under way is left alone. */
  hasten(key: string, nowMs: number): void {
    const turn = this.#turns.get(key);
    if (turn !== undefined) turn.dueMs = Math.min(turn.dueMs, nowMs);
  }

  /** When the next turn comes (epoch ms), `Infinity` when none does. One that is due already waits for room, not for time. */
  nextDueMs(nowMs: number): number {
    let next = Infinity;
    for (const { dueMs, underWay } of this.#turns.values()) {
      if (!underWay && dueMs > nowMs) next = Math.min(next, dueMs);
    }
    return next;
  }
}
