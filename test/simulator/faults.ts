import type { Task, TaskFault } from './tasks.ts';

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
  /** The rule that acts on this request, counted as one hit. */
  take(method: string, path: string): FaultRule | undefined;
}

export function faultQueue(): Faults {
  const rules: FaultRule[] = [];
  let nextId = 1;
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
      };
      nextId += 1;
      rules.push(rule);
      return rule;
    },
    clear: () => {
      rules.length = 0;
    },
    take: (method, path) => {
      for (const rule of rules) {
        if (rule.method !== undefined && rule.method !== method) continue;
        if (!rule.path.test(path)) continue;
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

/** What a name in the guest's name makes happen: for demonstrations without an admin port. */
export interface NameFault {
  /** Part of the VM's name. */
  name: string;
  /** For the table in README.md. */
  effect: string;
  task?: { type: string; fault: TaskFault; firstOnly?: boolean };
  agent?: 'silent' | 'slow' | 'no-address' | 'error';
  proxy?: 'refuses' | 'asks' | 'broken';
  /** Cluster seconds after the agent came up at which the guest powers itself off. */
  crashAfterSeconds?: number;
}

export const NAME_FAULTS: readonly NameFault[] = [
  {
    name: 'demo-clone-lock',
    effect: 'the first clone is killed half-way and leaves `lock: clone` behind',
    task: { type: 'qmclone', fault: { killAfterSeconds: 0.4 }, firstOnly: true },
  },
  {
    name: 'demo-clone-fails',
    effect: 'every clone fails with a storage lock timeout',
    task: {
      type: 'qmclone',
      fault: {
        fail: "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout",
      },
    },
  },
  {
    name: 'demo-clone-slow',
    effect: 'the clone takes 60 s more',
    task: { type: 'qmclone', fault: { delaySeconds: 60 } },
  },
  {
    name: 'demo-start-fails',
    effect: 'the first start fails (`start failed: QEMU exited with code 1`)',
    task: {
      type: 'qmstart',
      fault: { fail: 'start failed: QEMU exited with code 1' },
      firstOnly: true,
    },
  },
  {
    name: 'demo-destroy-warn',
    effect: 'the destroy ends with `WARNINGS: 1`',
    task: { type: 'qmdestroy', fault: { warnings: 1 } },
  },
  { name: 'demo-agent-silent', effect: 'the guest agent never answers', agent: 'silent' },
  { name: 'demo-agent-slow', effect: 'the guest agent needs four times as long', agent: 'slow' },
  {
    name: 'demo-agent-error',
    effect: 'the agent answers 200 with an error object (a disabled command)',
    agent: 'error',
  },
  {
    name: 'demo-no-address',
    effect: 'the agent reports loopback and link-local addresses only',
    agent: 'no-address',
  },
  { name: 'demo-proxy-down', effect: 'the VM has an address, no proxy listens', proxy: 'refuses' },
  { name: 'demo-proxy-auth', effect: 'the proxy asks for credentials (407)', proxy: 'asks' },
  { name: 'demo-proxy-broken', effect: 'the proxy answers 502 to everything', proxy: 'broken' },
  {
    name: 'demo-crash',
    effect: 'the guest powers itself off 20 s after its agent came up',
    crashAfterSeconds: 20,
  },
];

export function nameFaultsOf(name: string): NameFault[] {
  return NAME_FAULTS.filter((fault) => name.includes(fault.name));
}

/** Chooses the fault of a task from its VM's name; remembers which «first only» ones have happened. */
export function nameFaultChooser(): (task: Task, vmName: string) => TaskFault | undefined {
  const done = new Set<string>();
  return (task, vmName) => {
    for (const fault of nameFaultsOf(vmName)) {
      if (fault.task === undefined || fault.task.type !== task.type) continue;
      const key = `${fault.name} ${vmName}`;
      if (fault.task.firstOnly === true && done.has(key)) continue;
      done.add(key);
      return fault.task.fault;
    }
    return undefined;
  };
}
