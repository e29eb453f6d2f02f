import type { TaskFault } from './tasks.ts';

/** What happens to a request that a rule matches. */
export type FaultAction =
  /** Answers this instead of doing anything (`before`), or after having done it (`after`: 596 with the write done). */
  | { kind: 'status'; status: number; reason: string; when: 'before' | 'after'; body?: string }
  /** Cuts the connection, before or after the action was done. */
  | { kind: 'reset'; when: 'before' | 'after' }
  /** Never answers. */
  | { kind: 'hang'; when: 'before' | 'after' }
  /** Waits that many cluster seconds first. */
  | { kind: 'slow'; seconds: number }
  /** 200 with a body that is no JSON. */
  | { kind: 'malformed'; body?: string }
  /** 500 although the task runs (fork_worker's `.active.lock`, api-facts 2.5). */
  | { kind: 'lostUpid' }
  /** Works on the task that this request starts. */
  | ({ kind: 'task' } & TaskFault);

export interface FaultRule {
  id: number;
  method?: string;
  /** Matched against the path below /api2/json, without query. */
  path: RegExp;
  /** Part of the name of the VM or file that the request is about; absent: any. */
  name?: string;
  /** Skip this many matches first. */
  after: number;
  /** Then act this many times; `Infinity` = always. */
  times: number;
  action: FaultAction;
  hits: number;
}

export interface FaultSpec {
  method?: string;
  /** A regular expression. */
  path: string | RegExp;
  /** Only requests about a VM or file whose name contains this. */
  name?: string;
  /** Act on the nth match (1 = the next one); default 1. */
  nth?: number;
  /** How often from there on; default 1. */
  times?: number;
  action: FaultAction;
}

export interface Faults {
  rules: FaultRule[];
  push(spec: FaultSpec): FaultRule;
  clear(): void;
  /** Resolves when `goOn` is called next for this rule, or for all. */
  goneOn(id: number): Promise<void>;
  /** Requests that are slow and tasks that hang because of a rule go on now; without `id` because of any. */
  goOn(id?: number): void;
  /** The rule that acts on this request, counted as one hit. */
  take(request: { method: string; path: string; name: string }): FaultRule | undefined;
}

export function faultQueue(): Faults {
  const rules: FaultRule[] = [];
  let nextId = 1;
  const gates = new Map<number, PromiseWithResolvers<void>>();
  return {
    rules,
    push: (spec) => {
      const rule: FaultRule = {
        id: nextId,
        path: typeof spec.path === 'string' ? new RegExp(spec.path) : spec.path,
        after: (spec.nth ?? 1) - 1,
        times: spec.times ?? 1,
        action: spec.action,
        hits: 0,
        ...(spec.method === undefined ? {} : { method: spec.method }),
        ...(spec.name === undefined ? {} : { name: spec.name }),
      };
      nextId += 1;
      rules.push(rule);
      return rule;
    },
    clear: () => {
      rules.length = 0;
    },
    goneOn: (id) => {
      const gate = gates.get(id) ?? Promise.withResolvers();
      gates.set(id, gate);
      return gate.promise;
    },
    goOn: (only) => {
      for (const [id, gate] of gates) {
        if (only !== undefined && id !== only) continue;
        gates.delete(id);
        gate.resolve();
      }
    },
    take: ({ method, path, name }) => {
      for (const rule of rules) {
        if (rule.method !== undefined && rule.method !== method) continue;
        if (!rule.path.test(path)) continue;
        if (rule.name !== undefined && !name.includes(rule.name)) continue;
        if (rule.times <= 0) continue;
        if (rule.after > 0) {
          rule.after -= 1;
          continue;
        }
        rule.times -= 1;
        rule.hits += 1;
        return rule;
      }
      return undefined;
    },
  };
}
