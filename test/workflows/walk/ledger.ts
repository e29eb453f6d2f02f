/**
 * Whose every VM and seed is, by who made it and what an administrator did to it since; and whether a request was one that
 * its sender may send. It reads no mark, so it cannot share a mistake of the operator.
 */
import type { Vm } from '../../simulator/cluster.ts';
import type { SeenRequest } from '../../simulator/requestLog.ts';
import type { Simulator } from '../../simulator/simulator.ts';
import type { InstallationName } from './operations.ts';

export interface Entry {
  maker: InstallationName | 'hand';
  /** For people who read a failure. */
  story: string;
  /** An administrator changed name or mark, so that it is his until he gives it back (epoch ms). */
  takenAtMs: number | null;
  /** A backup of a VM of this installation, restored under another VMID with name and mark. */
  restoredFrom: InstallationName | null;
  /** An administrator had it for a while: its Proxy has another VM by then, and it goes with the Proxy only. */
  wasTaken: boolean;
  /** First eight digits of the UID in the name it was made with; `null` as long as it has none. */
  uidPrefix: string | null;
}

export interface Ledger {
  entryOf(vm: Vm): Entry | undefined;
  /** VMs with their entries, as they stand now. */
  standing(): { vm: Vm; entry: Entry }[];
  /** What an administrator is about to place. */
  byHand(vm: Vm, story: string, restoredFrom?: InstallationName | null): void;
  /** Requests that their sender must not send, in words. Empty as long as all is well. */
  harm: string[];
  /** Writes to Proxmox VE that were judged. */
  judged(): number;
}

/** A write that left before the administrator's hand was there may still arrive: the operator's own bound, and a little. */
const toleranceMs = 1_500;

/** Follows a simulator from now on; what stands there already was made by hand. */
export function keepLedger(
  simulator: Simulator,
  tokens: Readonly<Record<string, InstallationName>>,
): Ledger {
  const entries = new WeakMap<Vm, Entry>();
  /** Who uploaded a file, by node and name; one that nobody uploaded was put there by hand. */
  const uploads = new Map<string, InstallationName>();
  const harm: string[] = [];
  const { vms } = simulator.cluster;
  let judged = 0;

  function enter(
    vm: Vm,
    maker: Entry['maker'],
    story: string,
    restoredFrom: Entry['restoredFrom'] = null,
  ): void {
    const uidPrefix = uidPrefixOf(vm);
    entries.set(vm, { maker, story, takenAtMs: null, wasTaken: false, restoredFrom, uidPrefix });
  }

  for (const vm of vms.values()) enter(vm, 'hand', 'was there before');

  const set = vms.set.bind(vms);
  vms.set = (vmid, vm) => {
    if (!entries.has(vm)) {
      const authId = clonerOf(simulator, vmid);
      const maker = authId === undefined ? undefined : tokens[authId];
      enter(vm, maker ?? 'hand', maker === undefined ? 'made by hand' : `cloned by ${maker}`);
    }
    return set(vmid, vm);
  };

  function judge(request: SeenRequest): string | null {
    const { method, path, token } = request;
    const who = token === null ? undefined : tokens[token];
    if (method === 'GET' || who === undefined) return null;
    judged += 1;
    const [, vmid, clone] = /^\/nodes\/[^/]+\/(?:qemu|lxc)\/(\d+)(\/clone)?/.exec(path) ?? [];
    if (vmid !== undefined) return judgeVm(who, Number(vmid), clone !== undefined);
    const [, upid] = /^\/nodes\/[^/]+\/tasks\/([^/]+)$/.exec(path) ?? [];
    if (upid !== undefined) return upid.split(':')[7] === token ? null : "it is another one's task";
    const [, node, volume] = /^\/nodes\/([^/]+)\/storage\/[^/]+\/content\/(.+)$/.exec(path) ?? [];
    if (volume !== undefined) {
      const owner = ownerOf(node ?? '', volume.replace(/^.*iso\//, ''));
      return owner === null || owner === who ? null : `the file is that of ${owner}`;
    }
    if (/\/storage\/[^/]+\/upload$/.test(path)) {
      // Its name comes with the body, which is noted a moment later.
      queueMicrotask(() => noteUpload(who, request));
      return null;
    }
    return 'no such write is expected at all';
  }

  /** `null`: there is no such file. */
  function ownerOf(node: string, file: string): InstallationName | 'hand' | null {
    const uploader = uploads.get(`${node} ${file}`);
    if (uploader !== undefined) return uploader;
    const isThere = simulator.isos().some((iso) => iso.node === node && iso.name === file);
    return isThere ? 'hand' : null;
  }

  function judgeVm(who: InstallationName, vmid: number, clone: boolean): string | null {
    const vm = vms.get(vmid);
    if (vm === undefined) return null;
    if (clone) return vm.config.get('template') === '1' ? null : 'only templates are cloned';
    const entry = entries.get(vm);
    if (entry === undefined) return 'nobody knows this VM';
    if (entry.restoredFrom === who && entry.takenAtMs === null && isOnlyOne(vm)) {
      // Alone under name and mark it is the Proxy's VM, wherever it came from (design §3).
      entry.maker = who;
    }
    if (entry.maker !== who) return `it is of ${entry.maker} (${entry.story})`;
    const { takenAtMs } = entry;
    if (takenAtMs === null || Date.now() - takenAtMs <= toleranceMs) return null;
    return `an administrator made it his own (${entry.story})`;
  }

  function isOnlyOne(vm: Vm): boolean {
    const name = vm.config.get('name');
    return [...vms.values()].every((other) => {
      const taken = entries.get(other)?.takenAtMs !== null;
      return other === vm || taken || other.config.get('name') !== name;
    });
  }

  function noteUpload(who: InstallationName, { path, params }: SeenRequest): void {
    const [, node] = /^\/nodes\/([^/]+)/.exec(path) ?? [];
    const name = String(params['filename']);
    const owner = ownerOf(node ?? '', name);
    if (owner === null) uploads.set(`${node} ${name}`, who);
    else if (owner !== who) harm.push(`${who} uploads ${name} on ${node}, a file of ${owner}`);
  }

  const push = simulator.requests.push.bind(simulator.requests);
  simulator.requests.push = (...requests) => {
    for (const request of requests) {
      const wrong = judge(request);
      if (wrong !== null)
        harm.push(`${request.token}: ${request.method} ${request.path}: ${wrong}`);
    }
    return push(...requests);
  };

  return {
    entryOf: (vm) => entries.get(vm),
    standing: () =>
      [...vms.values()].flatMap((vm) => {
        const entry = entries.get(vm);
        if (entry === undefined) return [];
        // A clone gets its name a moment after it appears.
        entry.uidPrefix ??= uidPrefixOf(vm);
        return [{ vm, entry }];
      }),
    byHand: (vm, story, restoredFrom = null) => enter(vm, 'hand', story, restoredFrom),
    harm,
    judged: () => judged,
  };
}

function uidPrefixOf(vm: Vm): string | null {
  return /^proxy-.*-([0-9a-f]{8})-[0-9a-f]{6}$/.exec(vm.config.get('name') ?? '')?.[1] ?? null;
}

/** Whoever runs the clone that has just announced this VMID in its log. */
function clonerOf({ tasks }: Simulator, vmid: number): string | undefined {
  const says = (line: string): boolean => line.endsWith(` with ID ${vmid}`);
  return tasks.findLast(({ type, running, log }) => type === 'qmclone' && running && log.some(says))
    ?.authId;
}
