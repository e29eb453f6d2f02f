import type { FaultAction } from './faults.ts';
import type { Task, TaskFault } from './tasks.ts';

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

const NAME_FAULTS: readonly NameFault[] = [
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

/** Words for requests about one VM or one file, in names such as `fault-config-596-after`. */
const OPERATIONS: readonly (readonly [word: string, method: RegExp, path: RegExp])[] = [
  ['clone', /POST/, /\/clone$/],
  ['config', /PUT|POST/, /\/config$/],
  ['resize', /PUT/, /\/resize$/],
  ['start', /POST/, /\/status\/start$/],
  ['stop', /POST/, /\/status\/stop$/],
  ['shutdown', /POST/, /\/status\/shutdown$/],
  ['destroy', /DELETE/, /\/qemu\/\d+$/],
  ['upload', /POST/, /\/upload$/],
  ['unseed', /DELETE/, /\/content\//],
  ['read', /GET/, /\/config$/],
  ['status', /GET/, /\/status\/current$/],
  ['agent', /GET|POST/, /\/agent\//],
  ['task', /GET/, /\/tasks\/[^/]+\/status$/],
];

const LOCKED = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";

/** Words for what happens. */
export const FAULT_WORDS: Readonly<Record<string, FaultAction>> = {
  '595': { kind: 'status', status: 595, reason: 'No route to host', when: 'before' },
  '596-before': { kind: 'status', status: 596, reason: 'Broken pipe', when: 'before' },
  '596-after': { kind: 'status', status: 596, reason: 'Connection timed out', when: 'after' },
  'reset-before': { kind: 'reset', when: 'before' },
  'reset-after': { kind: 'reset', when: 'after' },
  'lost-upid': { kind: 'lostUpid' },
  '401': { kind: 'status', status: 401, reason: 'Authentication failed!', when: 'before' },
  '403': { kind: 'status', status: 403, reason: 'Permission check failed', when: 'before' },
  'hang-before': { kind: 'hang', when: 'before' },
  'hang-after': { kind: 'hang', when: 'after' },
  malformed: { kind: 'malformed' },
  slow: { kind: 'slow', seconds: 20 },
  fails: { kind: 'task', fail: LOCKED },
  warns: { kind: 'task', warnings: 1 },
  killed: { kind: 'task', killAfterSeconds: 0.2 },
  vanishes: { kind: 'task', vanish: true },
};

/**
 * The fault of a request about something whose name says `fault-<operation>-<word>`: the first time only, or always
 * with `-always` behind it.
 */
export function requestFaultChooser(): (request: {
  method: string;
  path: string;
  name: string;
}) => FaultAction | undefined {
  const done = new Set<string>();
  return ({ method, path, name }) => {
    for (const [operation, methods, paths] of OPERATIONS) {
      if (!methods.test(method) || !paths.test(path)) continue;
      for (const [word, action] of Object.entries(FAULT_WORDS)) {
        const phrase = `fault-${operation}-${word}`;
        if (!name.includes(phrase)) continue;
        const key = `${name} ${phrase}`;
        if (done.has(key) && !name.includes(`${phrase}-always`)) continue;
        done.add(key);
        return action;
      }
    }
    return undefined;
  };
}
