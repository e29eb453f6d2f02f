/** Volumes put into the simulator by hand: what a test needs to be there before anything is asked of Proxmox. */
import type { Vm } from '../simulator/cluster.ts';
import type { Simulator } from '../simulator/simulator.ts';

/** `node: null` on a storage that is shared; `size` in bytes. */
export interface IsoToAdd {
  file: string;
  node: string | null;
  storage?: string;
  size?: number;
}

/** An ISO without content. */
export function addIso(
  { cluster }: Simulator,
  { file, node, storage = 'proxy-seeds', size = 40_960 }: IsoToAdd,
): void {
  cluster.storages.add({
    storage,
    name: `iso/${file}`,
    node,
    content: 'iso',
    format: 'iso',
    size,
    used: size,
    ctime: 0,
    vmid: null,
    base: null,
    bytes: null,
  });
}

/** The VM's first disk on `local`, of 64 MiB; its config is the caller's to write. */
export function addDisk({ cluster }: Simulator, { vmid, node }: Pick<Vm, 'vmid' | 'node'>): void {
  cluster.storages.add({
    storage: 'local',
    name: `${vmid}/vm-${vmid}-disk-0.qcow2`,
    node,
    content: 'images',
    format: 'qcow2',
    size: 64 * 1024 ** 2,
    used: 16 * 1024 ** 2,
    ctime: Math.floor(Date.now() / 1000),
    vmid,
    base: null,
    bytes: null,
  });
}
