/** A moment of the simulated cluster held still, to be looked at for as long as it takes. */
import { z } from 'zod';
import { until } from './proxies.ts';
import type { SystemStack } from './stack.ts';

const pushed = z.object({ id: z.number() });
const rules = z.array(z.object({ id: z.number(), hits: z.number() }));
/** For the task that a request starts, and for the request itself; both longer than any look. */
const actions = {
  task: { kind: 'task', hang: true },
  request: { kind: 'slow', seconds: 1_000 },
} as const;

/**
 * Holds up the next request that matches, or its task; the function returned waits for it and lets it go on. `name`: of a
 * VM or file it is about, where other stories send such requests, too.
 */
export async function hold(
  stack: SystemStack,
  what: keyof typeof actions,
  method: string,
  path: string,
  name?: string,
): Promise<() => Promise<void>> {
  const { simulator } = stack;
  const fault = { method, path, action: actions[what], ...(name === undefined ? {} : { name }) };
  const { id } = pushed.parse(await simulator.admin('POST', '/faults', fault));
  return async () => {
    await until(stack, `${method} ${path} should be held up`, async () => {
      const all = rules.parse(await simulator.admin('GET', '/faults'));
      return all.some((rule) => rule.id === id && rule.hits > 0);
    });
    await simulator.admin('POST', `/faults/${id}/go-on`);
  };
}
