import { changed, proven, testsIn, type Statement } from '../statement.ts';

const cloneTemplateSteps = 'test/steps/cloneTemplate.test.ts';
const powerSteps = 'test/steps/power.test.ts';
const removalSteps = 'test/steps/removal.test.ts';
const seedAndConfigSteps = 'test/steps/seedAndConfig.test.ts';
const whoseVmSteps = 'test/steps/whoseVm.test.ts';
const markUnit = 'test/unit/mark.test.ts';

/** *What lands on Proxmox*: providerID and mark, lines 312 to 330 of the page. */
export const aboutIdentity: readonly Statement[] = [
  {
    line: 312,
    statement: 'The providerID is vms/<vmid>/<name>',
    proof: proven(
      testsIn('test/workflows/adopted.test.ts', 'is finished and serves, and no other is made'),
    ),
  },
  {
    line: 312,
    to: 313,
    statement: 'No node is remembered as a fact: where a VM is is looked up every time',
    proof: proven(
      testsIn('test/steps/removalWaits.test.ts', 'follow a VM to the node it moved to'),
      testsIn('test/steps/allocateVmid.test.ts', 'finds its VM on another node than planned'),
      testsIn(
        'test/steps/movingVm.test.ts',
        'between two looks is looked for again, and never taken for gone',
      ),
    ),
  },
  {
    line: 314,
    to: 315,
    statement: 'Whatever is done to a VM, its name and mark are read before',
    proof: proven(
      testsIn(
        removalSteps,
        'notice a swap between their first look and their request: stopVm',
        'notice a swap between their first look and their request: destroyVm',
        'send nothing when the identity they read is old: stopVm',
        'send nothing when the identity they read is old: destroyVm',
      ),
      testsIn(powerSteps, 'does not take the address of another VM on its VMID'),
    ),
  },
  {
    line: 315,
    to: 316,
    statement: 'Another name at the VMID: our VM is gone, and the other one is not touched',
    proof: proven(
      testsIn(
        removalSteps,
        "leave another Proxy's VM at the VMID alone and call ours gone",
        "leave somebody's VM that inherited our mark at the VMID alone and call ours gone",
      ),
      testsIn(powerSteps, 'does not take the address of another VM on its VMID'),
    ),
  },
  {
    line: 318,
    to: 319,
    statement: 'The mark is lines in the description, sent with the clone itself',
    proof: proven(
      testsIn(
        whoseVmSteps,
        'is part of the clone request, and in the first config that has a name',
      ),
      testsIn(cloneTemplateSteps, 'makes a full clone that is marked from the start'),
    ),
  },
  {
    line: 319,
    statement: 'A VM is never without its mark',
    proof: changed(
      'while its first disk is copied it has neither name nor mark; both come together',
      '03-config-clone-locked.json; design §3',
      testsIn(
        whoseVmSteps,
        'is part of the clone request, and in the first config that has a name',
      ),
      testsIn(
        'test/simulator/checklistVms.test.ts',
        'are a placeholder, then locked with everything, then unlocked, then on their target',
      ),
    ),
  },
  {
    line: 322,
    to: 324,
    statement: 'The mark has three lines: managed, uid, created-at',
    proof: changed(
      'these three first, and four more: installation, proxy, spec and deletion policy',
      'design §3',
      testsIn(
        markUnit,
        "begins with the specification's three lines",
        'is read from a description that has the three lines alone',
      ),
      testsIn(cloneTemplateSteps, 'makes a full clone that is marked from the start'),
    ),
  },
  {
    line: 327,
    statement: 'Collecting orphans knows our VMs by the mark',
    proof: proven(
      testsIn('test/unit/orphan.test.ts', 'whose VM may be collected'),
      testsIn('test/steps/census.test.ts', 'believes no name: the mark in the config decides'),
    ),
  },
  {
    line: 327,
    to: 328,
    statement: 'A line that is run again knows by the mark whether a VM of its name is its own',
    proof: proven(
      testsIn(
        'test/unit/ownership.test.ts',
        'our name without a mark: unmarked',
        'our name with the mark of another UID: otherUid',
      ),
    ),
  },
  {
    line: 328,
    to: 329,
    statement: 'Lines of an administrator are kept, and mean nothing',
    proof: proven(
      testsIn(
        markUnit,
        "keep every line of others, in its order, through another mark's rewrite",
        'survives CRLF, blanks around the lines and text of an admin between them',
      ),
      testsIn(
        seedAndConfigSteps,
        'writes once, keeps the lines of others and moves net0 without changing its MAC',
      ),
    ),
  },
  {
    line: 329,
    to: 330,
    statement: "When a VM was made is told by our line, since meta: ctime= is the template's",
    proof: proven(
      testsIn(cloneTemplateSteps, 'makes a full clone that is marked from the start'),
      testsIn(
        seedAndConfigSteps,
        'writes once, keeps the lines of others and moves net0 without changing its MAC',
      ),
    ),
  },
];
