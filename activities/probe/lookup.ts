/**
 * Host names of External proxies. Node looks names up on its four threads for everything that blocks, files and all other
 * names among it, and a name server that does not answer holds a thread for some 10 s: so probes take two at most, and
 * names that hang hold up only each other.
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** As `dns.lookup` with `all`: all addresses of a name. */
export type LookupAll = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

const namesAtOnce = 2;

/** A lookup for `net.connect`; whoever asks for a name that is being looked up waits for the same answer. */
export function boundedLookup(lookup: LookupAll = systemLookup): LookupFunction {
  const waiting = new Map<string, Answer[]>();
  const queue: { hostname: string; options: LookupOptions; key: string }[] = [];
  let underWay = 0;

  function next(): void {
    if (underWay >= namesAtOnce) return;
    const asked = queue.shift();
    if (asked === undefined) return;
    underWay += 1;
    lookup(asked.hostname, { ...asked.options, all: true }, (error, addresses) => {
      underWay -= 1;
      const answers = waiting.get(asked.key) ?? [];
      waiting.delete(asked.key);
      for (const answer of answers) answer(error, addresses);
      next();
    });
  }

  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options.family, options.hints]);
    const answer: Answer = (error, addresses) => {
      const [first] = error === null ? addresses : [];
      if (options.all === true) callback(error, addresses);
      else callback(error, first?.address ?? '', first?.family);
    };
    const others = waiting.get(key);
    if (others !== undefined) {
      others.push(answer);
      return;
    }
    waiting.set(key, [answer]);
    queue.push({ hostname, options, key });
    next();
  };
}
