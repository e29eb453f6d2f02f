/** The cluster the step tests run on: two nodes with local disks, one shared storage, one template per node. */
import type { FixtureInput } from '../simulator/fixture.ts';

export const tokenSecret = '00000000-0000-4000-8000-00000000cafe';
export const operatorToken = 'proxy-operator@pve!operator';

type Config = Record<string, string | number>;

/** A template's config; its disk is small, so that a clone takes no time. */
export function aTemplate(vmid: number, changes: Config = {}): Config {
  return {
    name: 'debian-13-template',
    template: 1,
    agent: '1,fstrim_cloned_disks=1',
    boot: 'order=scsi0',
    cores: 2,
    memory: '2048',
    net0: 'virtio=BC:24:11:0C:74:DE,bridge=vmbr0',
    scsi0: `local:${vmid}/base-${vmid}-disk-0.qcow2,size=64M`,
    tags: 'template',
    description: 'egress proxy template',
    ...changes,
  };
}

const operator =
  'VM.Allocate VM.Clone VM.Audit VM.Config.CDROM VM.Config.CPU VM.Config.Memory VM.Config.Disk ' +
  'VM.Config.Network VM.Config.Options VM.PowerMgmt VM.GuestAgent.Audit Datastore.Audit ' +
  'Datastore.AllocateSpace Datastore.AllocateTemplate Sys.Audit SDN.Use';
const seeds =
  'Datastore.Allocate Datastore.AllocateTemplate Datastore.AllocateSpace Datastore.Audit';

/** Templates 9001 (pve1, local), 9002 (pve1, shared disk) and 9003 (pve2, local). */
export function stepFixture(changes: Partial<FixtureInput> = {}): FixtureInput {
  return {
    nodes: [
      { name: 'pve1', ip: '10.99.0.1' },
      { name: 'pve2', ip: '10.99.0.2' },
    ],
    storages: [
      { id: 'local', type: 'dir', content: ['images', 'vztmpl'] },
      { id: 'proxy-seeds', type: 'dir', content: ['iso'] },
      { id: 'shared-images', type: 'nfs', content: ['images', 'iso'], shared: true },
    ],
    roles: [
      { id: 'ProxyOperator', privileges: operator.split(' ') },
      { id: 'ProxyOperatorSeeds', privileges: seeds.split(' ') },
    ],
    users: [
      { id: 'proxy-operator@pve', tokens: [{ id: 'operator', secret: tokenSecret }] },
      { id: 'other@pve', tokens: [{ id: 'other', secret: tokenSecret }] },
    ],
    acls: [
      { path: '/', principal: 'proxy-operator@pve', role: 'ProxyOperator' },
      { path: '/storage/proxy-seeds', principal: 'proxy-operator@pve', role: 'ProxyOperatorSeeds' },
      {
        path: '/storage/shared-images',
        principal: 'proxy-operator@pve',
        role: 'ProxyOperatorSeeds',
      },
    ],
    vms: [
      { vmid: 9001, node: 'pve1', config: aTemplate(9001) },
      {
        vmid: 9002,
        node: 'pve1',
        config: aTemplate(9002, {
          scsi0: 'shared-images:9002/base-9002-disk-0.qcow2,size=64M',
        }),
      },
      { vmid: 9003, node: 'pve2', config: aTemplate(9003) },
    ],
    ...changes,
  };
}
