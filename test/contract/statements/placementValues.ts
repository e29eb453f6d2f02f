import { nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const halfDoneSteps = 'test/steps/halfDone.test.ts';
const placementUnit = 'test/unit/placement.test.ts';
const specHashUnit = 'test/unit/specHash.test.ts';

/** *Placement*, lines 255 to 281 of the page. */
export const aboutPlacement: readonly Statement[] = [
  {
    line: 257,
    statement: 'All three values are checked before anything is asked of Proxmox',
    proof: proven(
      testsIn(
        'test/steps/resolvePlacement.test.ts',
        'gives everything the line needs and asks Proxmox for nothing',
        "refuses in the specification's words and names what there is",
      ),
    ),
  },
  {
    line: 257,
    to: 259,
    statement: 'An unknown value is permanent, and Failed with its message until the spec changes',
    proof: proven(
      testsIn(
        'test/workflows/trouble.test.ts',
        'latches a permanent failure of the Proxy until its spec changes',
      ),
      testsIn(
        'test/system/failures.test.ts',
        'an unknown image: Failed until the spec is corrected',
      ),
    ),
  },
  {
    line: 263,
    statement: 'zone is one of nodes; another one is refused in these words',
    proof: proven(testsIn(placementUnit, 'is refused: placement.zone "x" is not in proxmox.nodes')),
  },
  {
    line: 263,
    statement: 'zone may be left out when there is one node',
    proof: proven(testsIn(placementUnit, 'takes the only node when no zone is given')),
  },
  {
    line: 263,
    statement:
      'zone is required when there are several nodes, and its absence refused in these words',
    proof: proven(
      testsIn(
        placementUnit,
        'is refused: placement.zone is required when proxmox.nodes lists more than one node',
      ),
    ),
  },
  {
    line: 264,
    statement: 'machineType is a key of machineTypes; another one is refused in these words',
    proof: proven(
      testsIn(
        placementUnit,
        'is refused: placement.machineType "x" is not in proxmox.machineTypes',
      ),
    ),
  },
  {
    line: 265,
    statement: 'image is a key of templates; another one is refused in these words',
    proof: proven(
      testsIn(
        placementUnit,
        'is refused: placement.image "x" is not in proxmox.templates',
        'is refused: placement.image "constructor" is not in proxmox.templates',
      ),
    ),
  },
  {
    line: 266,
    statement: 'region is ignored',
    proof: proven(testsIn(placementUnit, 'ignores the region')),
  },
  {
    line: 266,
    statement: 'region is part of the spec hash, so another one makes another VM',
    proof: proven(testsIn(specHashUnit, 'is as published: region set', 'differs with every field')),
  },
  {
    line: 268,
    to: 272,
    statement:
      'An image whose VMID is missing or no template fails before any clone, in these words',
    proof: proven(
      testsIn(
        'test/unit/hardware.test.ts',
        "answers in the specification's very words when it is not one",
      ),
      testsIn(
        'test/steps/templateChecks.test.ts',
        'is refused when it is missing, before any clone',
        'is refused when it is an ordinary VM, before any clone',
      ),
    ),
  },
  {
    line: 274,
    to: 277,
    statement:
      'An edit of the catalogue changes the VMs made afterwards and leaves the others alone',
    proof: proven(
      testsIn(halfDoneSteps, 'changes the VMs made afterwards and leaves those that exist alone'),
    ),
  },
  {
    line: 274,
    to: 275,
    statement: 'The spec hash covers the values of the placement, not what they stand for',
    proof: proven(
      testsIn(halfDoneSteps, 'changes the VMs made afterwards and leaves those that exist alone'),
      testsIn(
        specHashUnit,
        'does not depend on the order of fields, nor on fields that are none of its business',
      ),
    ),
  },
  {
    line: 277,
    to: 279,
    statement: 'A new key is better than another meaning for an old one',
    proof: nonGoal('advice for the reader; docs/configuration.md has it'),
  },
  {
    line: 279,
    to: 280,
    statement: 'A template may be edited, replaced or deleted without harm to the VMs made of it',
    proof: proven(
      testsIn(
        halfDoneSteps,
        'does not matter to a VM that exists when its template is gone',
        'does not matter to a VM that exists when its template is an ordinary VM now',
        'does not reach the disks of a VM: they are copies, none is linked to the template',
      ),
    ),
  },
];
