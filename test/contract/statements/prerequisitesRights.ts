import { nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const wholeLife = 'test/steps/wholeLife.test.ts';

/** A privilege that is named when it is missing. */
function needed(role: 'general' | 'seeds', privilege: string): ReturnType<typeof testsIn> {
  const title = `hold nothing in vain: ${privilege} of the ${role} one is named when it is missing`;
  return testsIn(wholeLife, title);
}

/** *Proxmox prerequisites*: storage of the seeds, roles and token, lines 64 to 104 of the page. */
export const aboutRights: readonly Statement[] = [
  {
    line: 64,
    to: 67,
    statement: 'Deleting a seed takes Datastore.Allocate on its storage',
    proof: proven(needed('seeds', 'Datastore.Allocate')),
  },
  {
    line: 65,
    statement: 'The storage of the seeds holds iso content; another one is refused',
    proof: proven(
      testsIn(
        'test/steps/seedAndConfig.test.ts',
        'tells at once what no retry can mend: a storage without iso (cases.md 15)',
      ),
    ),
  },
  {
    line: 73,
    statement: 'A seed is some tens of KiB',
    proof: proven(
      testsIn('test/unit/nocloud.test.ts', 'is of some tens of KiB with a usual cloud-init'),
    ),
  },
  {
    line: 73,
    to: 74,
    statement: 'Proxmox stages an upload under /var/tmp of the node',
    proof: nonGoal('behaviour of Proxmox that the operator does not see'),
  },
  {
    line: 74,
    to: 75,
    statement: 'On a storage that is not shared a seed stays on the node where it was uploaded',
    proof: proven(
      testsIn(
        'test/steps/movingVm.test.ts',
        'leaves its seed where it was uploaded, and that is where the seed is deleted (cases.md 11 c)',
      ),
      testsIn(
        'test/workflows/seedsEverywhere.test.ts',
        'are deleted where they were uploaded, though the VM is on another node now (cases.md 11 c)',
      ),
    ),
  },
  {
    line: 76,
    to: 78,
    statement: "The agent's addresses are read with VM.GuestAgent.Audit, without VM.Monitor",
    proof: proven(
      needed('general', 'VM.GuestAgent.Audit'),
      testsIn(wholeLife, 'are enough for a whole life'),
    ),
  },
  {
    line: 78,
    statement: 'VM.Config.Cloudinit is not needed for a seed on ide2',
    proof: proven(testsIn(wholeLife, 'are enough for a whole life')),
  },
  {
    line: 79,
    to: 80,
    statement: 'SDN.Use is what lets the config write put a VLAN tag on a bridge',
    proof: proven(needed('general', 'SDN.Use')),
  },
  {
    line: 83,
    to: 88,
    statement: 'Two roles with these privileges are all the operator needs',
    proof: proven(
      testsIn(wholeLife, 'are enough for a whole life'),
      testsIn(
        'test/unit/privileges.test.ts',
        "nothing is missing with the guide's two roles",
        "the simulator's operator has exactly the guide's roles",
      ),
      testsIn(
        'test/docs/health.test.ts',
        'the guide makes the two roles whose privileges the check of a provider compares',
      ),
    ),
  },
  {
    line: 91,
    to: 94,
    statement:
      'A role on the path of the storage replaces what comes from /, so it repeats three privileges',
    proof: proven(
      needed('seeds', 'Datastore.AllocateTemplate'),
      testsIn(
        'test/unit/privileges.test.ts',
        'an entry on a deeper path replaces what it would inherit',
      ),
    ),
  },
  {
    line: 94,
    to: 98,
    statement: 'The role on / covers clone, config, resize, start, stop, agent, upload and destroy',
    proof: proven(
      needed('general', 'VM.Clone'),
      needed('general', 'VM.Allocate'),
      needed('general', 'VM.PowerMgmt'),
      needed('general', 'VM.Config.Disk'),
      needed('general', 'Datastore.AllocateSpace'),
    ),
  },
  {
    line: 96,
    to: 98,
    statement: 'Without Datastore.Allocate deleting a seed is a 403 that names path and privilege',
    proof: proven(testsIn('test/steps/deleteSeed.test.ts', 'names the privilege that is missing')),
  },
  {
    line: 98,
    to: 99,
    statement: "A token without privilege separation has its user's privileges",
    proof: proven(
      testsIn(wholeLife, 'are enough for a whole life'),
      testsIn(
        'test/steps/checkPrivileges.test.ts',
        'a token with privilege separation and no ACL owns nothing, and is told all it needs',
      ),
    ),
  },
  {
    line: 101,
    to: 103,
    statement: 'The token is kept as one line of a file that only its owner can read',
    proof: proven(
      testsIn(
        'test/system/deployment.test.ts',
        'make proxmox-token-secret refuses a token file that others can read',
      ),
    ),
  },
  {
    line: 102,
    to: 104,
    statement: 'Token and CA are kept in ~/.config, where the target of the Makefile finds them',
    proof: proven(
      testsIn(
        'test/system/deployment.test.ts',
        'make proxmox-token-secret takes the two files of ~/.config when no others are named',
      ),
    ),
  },
];
