import { changed, proven, testsIn, type Statement } from '../statement.ts';

const allocateVmidSteps = 'test/steps/allocateVmid.test.ts';
const halfDoneSteps = 'test/steps/halfDone.test.ts';
const whoseVmSteps = 'test/steps/whoseVm.test.ts';
const ownershipUnit = 'test/unit/ownership.test.ts';
const adoptedWorkflows = 'test/workflows/adopted.test.ts';

/** *What lands on Proxmox*: whose VM it is, lines 295 to 310 of the page. */
export const aboutOwnership: readonly Statement[] = [
  {
    line: 295,
    to: 296,
    statement: 'Before a VMID is chosen the name is looked for in the whole cluster',
    proof: proven(
      testsIn(halfDoneSteps, 'adopts its VM wherever in the cluster and at whatever VMID'),
    ),
  },
  {
    line: 295,
    to: 296,
    statement: 'The name in the listing is the name of the VM',
    proof: changed(
      "the listing's name is a hint, because it may be a predecessor's; the name in the config decides",
      'design §3; 02-cluster-resources-vm-cloning*.json',
      testsIn(
        allocateVmidSteps,
        'adopts its VM although the listing has no name for it yet',
        "adopts a recorded VM although its row still shows the predecessor's name",
      ),
    ),
  },
  {
    line: 296,
    to: 297,
    statement: 'A VMID that is taken and a VM of the name go through the same check of ownership',
    proof: proven(testsIn(ownershipUnit, 'ownership')),
  },
  {
    line: 297,
    to: 298,
    statement: 'A VM with a lock, such as a clone that has no name yet, is waited for',
    proof: changed(
      'only when it may be ours: the VM of somebody else is passed by whatever its lock',
      'design §5',
      testsIn(halfDoneSteps, 'waits for a clone under way and adopts what it makes'),
      testsIn(
        allocateVmidSteps,
        'probes past a VM of somebody else, whatever its lock',
        'refuses a backup of its stopped VM: WaitingForLock',
      ),
    ),
  },
  {
    line: 300,
    statement: 'Another name: the next VMID is tried',
    proof: proven(
      testsIn(allocateVmidSteps, 'probes past a VM of somebody else, whatever its lock'),
    ),
  },
  {
    line: 301,
    to: 302,
    statement:
      'Our name and our mark with our UID: adopted, and the line goes on where the earlier one stopped',
    proof: proven(
      testsIn(halfDoneSteps, 'a line that knows nothing of an earlier one'),
      testsIn(ownershipUnit, 'our name and our mark: ours'),
      testsIn(adoptedWorkflows, 'is finished and serves, and no other is made'),
    ),
  },
  {
    line: 301,
    to: 302,
    statement: 'Our name and a mark with an empty UID: adopted',
    proof: changed(
      'in vmidRange only; the mark is then completed',
      'design §3',
      testsIn(
        ownershipUnit,
        'our name, an empty UID, in the range: ours',
        'our name, an empty UID, outside the range: otherUid',
      ),
      testsIn(
        whoseVmSteps,
        'of a VM without UID is completed by the line that adopts it, and lines of others stay',
      ),
    ),
  },
  {
    line: 303,
    to: 305,
    statement:
      'Our name with no mark or another UID: a permanent error with VMID and both UIDs, and the VM is left alone',
    proof: proven(
      testsIn(
        allocateVmidSteps,
        'names both UIDs of a VM with its name that it did not make',
        'refuses a VM with its name and no mark: OwnershipConflict',
      ),
    ),
  },
  {
    line: 306,
    to: 307,
    statement: 'Our VM, hibernated: a permanent error that says to resume or destroy it',
    proof: changed(
      'before it was Ready it is destroyed and made again, afterwards it is started, and a deletion destroys it',
      'design, deliberate changes; §7',
      testsIn(
        adoptedWorkflows,
        'that was hibernated before it was Ready is destroyed and made again, for it would wake up with an old seed',
        'that was hibernated is removed by a deletion',
      ),
      testsIn('test/steps/removalWaits.test.ts', 'destroy a hibernated VM directly'),
    ),
  },
  {
    line: 309,
    to: 310,
    statement: 'Two VMs of our name: a permanent error that names every VMID, until one is left',
    proof: proven(
      testsIn(whoseVmSteps, 'are both named, and neither is touched until one is gone'),
      testsIn(
        'test/unit/allocation.test.ts',
        'two of our name, one recorded and stopped: DuplicateVm',
        'two running VMs of our name, both recorded: DuplicateVm',
      ),
    ),
  },
  {
    line: 309,
    to: 310,
    statement: 'Two VMs of our name hold up a deletion, whichever of them is ours',
    proof: changed(
      'it removes the one that this run recorded before its clone and leaves the copy, with an Event; where no record tells them apart it waits',
      'design §3, deliberate changes',
      testsIn(
        'test/workflows/copies.test.ts',
        'stays when its Proxy is deleted, and an Event says so',
        'and its original both stay when no record tells them apart, until a person has removed one',
      ),
      testsIn(
        'test/steps/census.test.ts',
        'keeps a backup that was restored beside its original, and the original: nobody can tell which is ours',
      ),
    ),
  },
  {
    line: 309,
    to: 310,
    statement: 'A VM of our name counts wherever it is',
    proof: changed(
      'not at a VMID that was given up as a leftover: the other one is used, and the leftover goes once it is unlocked',
      'design §5, deliberate changes',
      testsIn(
        whoseVmSteps,
        'are no two while the VMID of one was given up: it is the other one that counts',
      ),
      testsIn('test/steps/leftovers.test.ts', 'can be removed when it is ours and unlocked'),
    ),
  },
];
