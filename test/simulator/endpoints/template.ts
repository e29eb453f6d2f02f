import { checkLock, isTemplate, requireVm, type Vm } from '../cluster.ts';
import { integer, startTask, underVmLock, vmPrivilege, type Call, type Endpoint } from '../core.ts';
import { dieWith } from '../errors.ts';
import { DISK_KEYS, drivesOf, isCdrom, printDrive } from '../vmConfig.ts';
import { volidOf } from '../volumes.ts';

/** Turning a VM into a template (api-facts 5.24). */
export const templateEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/template',
    proxied: true,
    protected: true,
    check: vmPrivilege('VM.Allocate'),
    schema: { disk: { type: 'string', optional: true, enum: DISK_KEYS } },
    handler: (call) => {
      const vmid = integer(call.params, 'vmid');
      convertible(call, vmid);
      return startTask(call, 'qmtemplate', vmid, (worker) =>
        underVmLock(call, vmid, worker, async () => {
          const vm = convertible(call, vmid);
          vm.config.set('template', '1');
          await worker.sleep(call.core.times.linkedCloneSeconds);
          renameDisks(call, vm);
        }),
      );
    },
  },
];

/** Checked before the task and again in it. */
function convertible(call: Call, vmid: number): Vm {
  const vm = requireVm(call.core.cluster, call.node, vmid);
  checkLock(vm);
  if (isTemplate(vm)) throw dieWith("you can't convert a template to a template");
  if (vm.running !== null) throw dieWith("you can't convert a VM to template if VM is running");
  return vm;
}

function renameDisks(call: Call, vm: Vm): void {
  const { storages } = call.core.cluster;
  for (const { key, drive } of drivesOf(vm.config)) {
    const volume = storages.lookup(drive.file, call.node);
    if (volume === undefined || isCdrom(drive)) continue;
    volume.name = volume.name.replace(/\bvm-(\d+-disk-\d+)/, 'base-$1');
    vm.config.set(key, printDrive({ ...drive, file: volidOf(volume) }));
  }
}
