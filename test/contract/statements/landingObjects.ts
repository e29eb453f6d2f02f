import { changed, proven, testsIn, type Statement } from '../statement.ts';

const halfDoneSteps = 'test/steps/halfDone.test.ts';
const placementOnNodesSteps = 'test/steps/placementOnNodes.test.ts';
const whoseVmSteps = 'test/steps/whoseVm.test.ts';
const lifeSystem = 'test/system/life.test.ts';
const identityUnit = 'test/unit/identity.test.ts';

/** *What lands on Proxmox*: objects and VMID, lines 282 to 294 of the page. */
export const aboutObjects: readonly Statement[] = [
  {
    line: 288,
    statement: "A Proxy's VM has a name of its own, which follows from the Proxy",
    proof: changed(
      'proxy-<slug>-<installation>-<UID>-<spec hash>: a DNS label that says whose it is and for which spec',
      'design §3',
      testsIn(
        identityUnit,
        'carries slug, installation, UID and spec hash, in this order',
        'is a DNS label of at most 49 characters that parses back, for every object name',
      ),
    ),
  },
  {
    line: 288,
    statement: 'The VM has a VMID of the range, and lives as long as the Proxy',
    proof: proven(
      testsIn(
        'test/steps/theLine.test.ts',
        'makes one VM with its seed, config, size and address, and every step may run twice',
      ),
      testsIn(lifeSystem, 'a Managed Proxy serves, shows what it is, and leaves nothing behind'),
    ),
  },
  {
    line: 289,
    statement: "Its disks are full copies on the config's storage or the template's",
    proof: proven(
      testsIn(
        halfDoneSteps,
        'does not reach the disks of a VM: they are copies, none is linked to the template',
      ),
      testsIn(placementOnNodesSteps, 'is the one in the config, else that of the template'),
    ),
  },
  {
    line: 289,
    statement: 'The disks go with the VM, also those that no config names',
    proof: proven(
      testsIn('test/steps/removal.test.ts', 'take a running VM away, and every step may run twice'),
      testsIn(whoseVmSteps, 'true: is what the destroy asks for'),
    ),
  },
  {
    line: 289,
    statement: 'Disks that no config names are always looked for',
    proof: changed(
      'destroyUnreferencedDisks: false leaves them',
      'design §2',
      testsIn(whoseVmSteps, 'false: is what the destroy asks for'),
    ),
  },
  {
    line: 290,
    statement:
      "The seed is <VM name>-seed.iso on isoStorage of the VM's node, and lives as long as the Proxy",
    proof: proven(
      testsIn(identityUnit, 'are named after the VM and found again by that name'),
      testsIn(
        'test/steps/seedAndConfig.test.ts',
        'puts cloud-init from a Secret byte for byte on the node the VM is on',
      ),
      testsIn(lifeSystem, 'a Managed Proxy serves, shows what it is, and leaves nothing behind'),
    ),
  },
  {
    line: 292,
    to: 293,
    statement:
      "The VMID follows from the Proxy's UID, so a line that is run again comes to the same one",
    proof: proven(
      testsIn(
        identityUnit,
        'tries the published VMIDs for 0f3a0000-0000-4000-8000-000000000001 in 100000 to 199999',
      ),
      testsIn(halfDoneSteps, 'adopts what one that ended after clone has left, and finishes it'),
    ),
  },
  {
    line: 293,
    statement: 'It is an FNV-1a hash of the UID, placed in the range',
    proof: proven(
      testsIn(
        identityUnit,
        'agrees with the test vectors of FNV-1a itself',
        'hashes "0f3a0000-0000-4000-8000-000000000001" as published',
        'tries the published VMIDs for ffffffff-ffff-4fff-bfff-ffffffffffff in 100000 to 199999',
      ),
    ),
  },
  {
    line: 293,
    to: 294,
    statement: 'A VMID that is taken is passed by one at a time, up to 32 of them',
    proof: proven(
      testsIn(
        identityUnit,
        'tries up to 32 different VMIDs of the range, each one after the other and wrapping',
      ),
      testsIn(placementOnNodesSteps, 'wrap at the end of the range'),
    ),
  },
  {
    line: 294,
    statement: 'When none is vacant, that is a transient error, and over when one is freed',
    proof: proven(
      testsIn(
        placementOnNodesSteps,
        'that are all taken are waited for, and one that is freed is used',
      ),
    ),
  },
];
