/** One walk: two installations on one cluster, operation after operation, and the end. */
import { setTimeout as delay } from 'node:timers/promises';
import { adminActs, type AdminWorld } from './admin.ts';
import { startCluster, type Cluster } from './cluster.ts';
import { expectNothingLeft, expectWanted, mend, type EndWorld } from './ending.ts';
import { nextFault } from './faults.ts';
import { installationNames, type Operation, type OperationKind } from './operations.ts';
import { startOperator, type Operator } from './operator.ts';
import { replayWalk } from './replays.ts';
import type { Ground } from './server.ts';
import { instead, newUsers, proxiesOf, userActs } from './user.ts';

/** What a walk came to, in numbers. */
export interface WalkFigures {
  operations: number;
  /** Requests that the simulator saw, and writes among them, each of which was judged. */
  requests: number;
  writes: number;
  /** Proxies that were made, and VMs that were cloned for them. */
  proxies: number;
  clones: number;
  /** Runs whose history was gone through once more. */
  replayed: number;
}

export interface WalkSettings {
  /** Hears of every deed. */
  tell?: (what: string) => void;
  /** How long each part of the end may take. */
  patienceMs?: number;
}

/**
 * After each operation the operators get so many requests done, at most, before the next one comes: what happens between two
 * operations does not hang on how busy the machine is. When nobody asks anything, time ends the wait.
 */
const mostRequests = { usual: 30, timePasses: 200 } as const;
const mostMs = { usual: 150, timePasses: 800 } as const;
/** The same while an operator works on something. */
const mostBusyMs = { usual: 800, timePasses: 2_500 } as const;
const lookMs = 10;

interface WalkWorld extends EndWorld {
  operators: readonly Operator[];
}

/** Throws what did not hold, with what was done until then. */
export async function walk(
  ground: Ground,
  operations: readonly Operation[],
  { tell = () => undefined, patienceMs = 60_000 }: WalkSettings = {},
): Promise<WalkFigures> {
  const cluster = await startCluster(ground.tls);
  const server = await ground.startServer();
  const operators: Operator[] = [];
  const done: string[] = [];
  const note = (what: string): void => {
    done.push(what);
    tell(what);
  };
  try {
    for (const name of installationNames) {
      operators.push(await startOperator(ground, server, name, cluster.simulator.url));
    }
    const world = worldOf(cluster, operators, patienceMs);
    for (const operation of operations) {
      note(`${done.length + 1}. ${await perform(world, operation)}`);
      world.check();
    }
    note('everything is mended');
    mend(world);
    await expectWanted(world);
    note('everything is deleted');
    await expectNothingLeft(world);
    return { ...figuresOf(world, operations.length), replayed: await replayWalk(ground, server) };
  } catch (error) {
    const unreplayed = await replayWalk(ground, server).then(() => '', textOf);
    const report = reportOf(cluster, operators, done);
    throw new Error(`${textOf(error)}\n${unreplayed}\n\n${report}`, { cause: error });
  } finally {
    await Promise.all(operators.map((operator) => operator.stop()));
    await server.teardown();
    await cluster.close();
  }
}

function worldOf(cluster: Cluster, operators: readonly Operator[], patienceMs: number): WalkWorld {
  const broken: unknown[] = [];
  for (const { failed } of operators) failed.catch((error: unknown) => broken.push(error));
  const notes: AdminWorld['notes'] = new Map();
  return {
    cluster,
    operators,
    patienceMs,
    taken: new Map(),
    notes,
    users: newUsers(),
    check: () => {
      if (broken.length > 0) throw new Error('a worker broke', { cause: broken[0] });
      const wrong = [...cluster.ledger.harm, ...cluster.changes()];
      if (wrong.length > 0) throw new Error(`others' things were touched:\n${wrong.join('\n')}`);
      for (const { vm, entry } of cluster.ledger.standing()) {
        const note = notes.get(vm);
        // A VM that is being destroyed has lost its name, and the rest of its config with it.
        const isWhole = vm.config.has('name') && entry.takenAtMs === null;
        if (note === undefined || !isWhole) continue;
        if (vm.config.get('description')?.includes(note) !== true) {
          throw new Error(`the line «${note}» is gone from the description of VM ${vm.vmid}`);
        }
      }
    },
  };
}

/** Carries it out, or changes a Proxy where there is nothing it could be done to. Says what was done. */
async function perform(world: WalkWorld, operation: Operation): Promise<string> {
  const { kind, by } = operation;
  const operator = world.operators.find(({ name }) => name === by);
  if (operator === undefined) throw new Error(`no installation ${by}`);
  const what =
    (await act(world, operator, operation)) ??
    instead(operator, operation, world.users) ??
    `nothing to ${kind}`;
  world.cluster.accept();
  await letGoOn(world, operation);
  return `${by}: ${what}`;
}

async function act(
  world: WalkWorld,
  operator: Operator,
  operation: Operation,
): Promise<string | null> {
  const { kind, pick } = operation;
  if (isUserKind(kind)) return userActs[kind](operator, operation, world.users);
  if (isAdminKind(kind)) {
    world.check();
    return adminActs[kind](world, operation);
  }
  const { simulator } = world.cluster;
  const node = simulator.cluster.nodes.get('pve2');
  switch (kind) {
    case 'nodeDown':
      if (node?.state !== 'up') return null;
      simulator.setNode('pve2', { state: 'dead' });
      return 'node pve2 loses power';
    case 'nodeUp':
      if (node?.state !== 'dead') return null;
      simulator.setNode('pve2', { state: 'up' });
      return 'node pve2 is switched on';
    case 'fault': {
      const fault = nextFault(pick);
      simulator.faults.push(fault);
      return `the next ${fault.method} fails: ${JSON.stringify(fault.action)}`;
    }
    case 'confirmAlarms': {
      const alarm = operator.alarms().at(-1);
      if (alarm === undefined) return null;
      operator.confirm(alarm);
      return `confirms ${alarm}`;
    }
    case 'collect':
      await operator.collect();
      return 'a round of the collection';
    default:
      return 'time passes';
  }
}

async function letGoOn(world: WalkWorld, { kind, pick }: Operation): Promise<void> {
  const pace = kind === 'timePasses' ? kind : 'usual';
  const { requests } = world.cluster.simulator;
  const until = requests.length + (pick % mostRequests[pace]);
  const startedMs = Date.now();
  const isOver = (): boolean => {
    const most = world.operators.some(isBusy) ? mostBusyMs : mostMs;
    return Date.now() - startedMs >= most[pace];
  };
  while (requests.length < until && !isOver()) await delay(lookMs);
}

/** Something is under way that it would say of itself. */
function isBusy(operator: Operator): boolean {
  return proxiesOf(operator).some(({ metadata, status }) => {
    const reconciling = status.conditions.find(({ type }) => type === 'Reconciling');
    return reconciling?.status !== 'False' || status.observedGeneration !== metadata.generation;
  });
}

function isUserKind(kind: OperationKind): kind is keyof typeof userActs {
  return kind in userActs;
}

function isAdminKind(kind: OperationKind): kind is keyof typeof adminActs {
  return kind in adminActs;
}

function figuresOf(
  { cluster, users }: WalkWorld,
  operations: number,
): Omit<WalkFigures, 'replayed'> {
  const { simulator, ledger } = cluster;
  const isClone = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'POST' && path.endsWith('/clone');
  return {
    operations,
    requests: simulator.requests.length,
    writes: ledger.judged(),
    proxies: users.uids.length,
    clones: simulator.requests.filter(isClone).length,
  };
}

/** What a person needs who reads the failure. */
function reportOf(
  { simulator, ledger }: Cluster,
  operators: readonly Operator[],
  done: readonly string[],
): string {
  const vms = ledger.standing().map(({ vm, entry }) => {
    const { name, lock } = Object.fromEntries(vm.config);
    return `VM ${vm.vmid} on ${vm.node} ${name} (${entry.story}${lock === undefined ? '' : `, lock ${lock}`}${vm.running === null ? '' : ', runs'})`;
  });
  const writes = simulator.requests
    .filter(({ method }) => method !== 'GET')
    .slice(-40)
    .map(({ time, method, path, status, token }) => {
      const at = new Date(time).toISOString().slice(11, 23);
      return `${at} ${token?.replace(/^.*!/, '')} ${method} ${path} → ${status}`;
    });
  const logs = operators.flatMap(({ name, lines }) =>
    lines.slice(-60).map((line) => `${name} ${line.slice(0, 600)}`),
  );
  return [
    'What was done:',
    ...done.slice(-80),
    '\nVMs:',
    ...vms,
    '\nLast writes:',
    ...writes,
    '\nLogs:',
    ...logs,
  ].join('\n');
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
