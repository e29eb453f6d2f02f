/** Reading one VM: row, config and status, and whose it is. */
import type { StepDeps } from '../deps.ts';
import { isNotFound, transient } from '../providerError.ts';
import type { ProxmoxApi, VmConfig, VmRow, VmStatus } from '../proxmox/api.ts';
import { ownership, type Claim, type Ownership } from '../vm/ownership.ts';
import { parseMark } from '../vm/identity.ts';
import { powerOf } from '../vm/state.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import type { PowerState, VmRef } from '../../workflows/contract/steps.ts';

/** The claim of one Proxy on one VM name of one provider. */
export function claimOf(deps: StepDeps, provider: string, ref: ProxyRef, vmName: string): Claim {
  const { id, also } = deps.installation;
  const { vmidRange } = deps.providers.config(provider).proxmox;
  return { vmName, uid: ref.uid, installationId: id, also, vmidRange };
}

/** The verdict on the VM of one row and its config. */
export function ownershipOf(row: VmRow, config: VmConfig, claim: Claim): Ownership {
  const { name, description, template } = config.values;
  const seen = {
    vmid: row.vmid,
    type: row.type,
    template: template === '1',
    name: name ?? null,
    mark: parseMark(description ?? ''),
  };
  return ownership(seen, claim);
}

/** «VM 100123 on pv1-1», the way every message names a VM. */
export function vmAt({ vmid, node }: { vmid: number; node: string }): string {
  return `VM ${vmid} on ${node}`;
}

/** A VM's config. When it is not under its row's node (any more), Transient: the next listing knows better. */
export async function readConfig(api: ProxmoxApi, row: VmRow): Promise<VmConfig> {
  try {
    return await api.getVmConfig(row.node, row.vmid);
  } catch (error) {
    throw isNotFound(error) ? vanished(row, error) : error;
  }
}

/** The VM is not where the listing showed it: look again. */
export function vanished(at: { vmid: number; node: string }, cause?: unknown): Error {
  const { vmid, node } = at;
  const message = `${vmAt(at)} is not there any more (moved or removed); looking again`;
  return transient('VmVanished', message, { vmid, node, goBack: true, retryAfterMs: 1_000 }, cause);
}

/** A VM that is provably ours, as it is right now. */
export interface OurVm {
  vmid: number;
  /** Where it is now; the node of a VmRef is only where it was. */
  node: string;
  row: VmRow;
  config: VmConfig;
  lock: string | null;
  status: VmStatus;
  power: PowerState;
  haManaged: boolean;
}

/**
 * The VM a step of the line works on. Throws Transient with `goBack` when it is gone or not ours: the line then
 * looks again with `allocateVmid`, which knows what to make of it.
 */
export async function findOurVm(
  deps: StepDeps,
  api: ProxmoxApi,
  ref: ProxyRef,
  vm: VmRef,
): Promise<OurVm> {
  const rows = await api.listVms();
  const row = rows.find(({ vmid }) => vmid === vm.vmid);
  if (row === undefined) throw vanished(vm);
  const [config, status] = await Promise.all([readConfig(api, row), readStatus(api, row)]);
  const { kind } = ownershipOf(row, config, claimOf(deps, vm.provider, ref, vm.name));
  if (kind !== 'ours') {
    const found = config.values.name === undefined ? 'has no name' : `is ${config.values.name}`;
    throw transient(
      'VmVanished',
      `${vmAt(row)} ${found} (${kind}), not our ${vm.name}; looking again`,
      { vmid: row.vmid, node: row.node, goBack: true },
    );
  }
  const lock = config.values.lock ?? null;
  const { node, vmid } = row;
  const power = powerOf(status, lock);
  return { vmid, node, row, config, lock, status, power, haManaged: status.haManaged };
}

/** What a line about a VM tells of its state. */
export function statusFields({ power, status }: OurVm): Record<string, string> {
  return { state: power, status: status.status, qmpstatus: status.qmpstatus };
}

/** Live status; same failure as readConfig. */
export async function readStatus(
  api: ProxmoxApi,
  row: VmRow,
): Promise<Awaited<ReturnType<ProxmoxApi['getVmStatus']>>> {
  try {
    return await api.getVmStatus(row.node, row.vmid);
  } catch (error) {
    throw isNotFound(error) ? vanished(row, error) : error;
  }
}
