/** Walks until so many operations are done; a failure tells how to walk the same way again. */
import { asyncProperty, check } from 'fast-check';
import { walks } from './operations.ts';
import type { Ground } from './server.ts';
import { walk, type WalkFigures, type WalkSettings } from './walk.ts';

export interface WalkOptions extends WalkSettings {
  /** At least so many, in walks of `length` each. */
  operations: number;
  length: number;
  /** fast-check's own, of a failure that is to be seen again. */
  seed?: number;
  path?: string;
  /** Told after every walk. */
  onWalk?: (figures: WalkFigures, seconds: number) => void;
}

/** The sums of all walks. Throws what a walk threw, with the command that repeats it. */
export async function runWalks(
  ground: Ground,
  options: WalkOptions,
): Promise<WalkFigures & { walks: number }> {
  const { operations, length, seed, path, onWalk } = options;
  const all: WalkFigures[] = [];
  const property = asyncProperty(walks(length), async (course) => {
    const startedMs = Date.now();
    const figures = await walk(ground, course, options);
    all.push(figures);
    onWalk?.(figures, (Date.now() - startedMs) / 1_000);
  });
  const outcome = await check(property, {
    numRuns: Math.ceil(operations / length),
    // A shorter walk that fails in the same way would take as long to find as the walks themselves.
    endOnFailure: true,
    ...(seed === undefined ? {} : { seed }),
    ...(path === undefined ? {} : { path }),
  });
  if (outcome.failed) {
    const { counterexamplePath, errorInstance } = outcome;
    const again = `npm run walk -- --operations ${operations} --length ${length} --seed ${outcome.seed} --path ${counterexamplePath}`;
    const why = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    throw new Error(`${why}\n\nTo walk this way again: ${again}`, { cause: errorInstance });
  }
  const sum = (key: keyof WalkFigures): number =>
    all.reduce((total, figures) => total + figures[key], 0);
  return {
    walks: all.length,
    operations: sum('operations'),
    requests: sum('requests'),
    writes: sum('writes'),
    proxies: sum('proxies'),
    clones: sum('clones'),
    replayed: sum('replayed'),
  };
}

/** One line for people. */
export function describeFigures(figures: WalkFigures): string {
  const { operations, requests, writes, proxies, clones, replayed } = figures;
  return `${operations} operations, ${proxies} Proxies, ${clones} clones; ${requests} requests seen, ${writes} writes judged, ${replayed} runs replayed`;
}
