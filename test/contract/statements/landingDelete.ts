import { changed, proven, testsIn, type Statement } from '../statement.ts';

const deleteSeedSteps = 'test/steps/deleteSeed.test.ts';
const removalSteps = 'test/steps/removal.test.ts';
const removalStatesSteps = 'test/steps/removalStates.test.ts';
const changeWorkflows = 'test/workflows/change.test.ts';
const seedsEverywhereWorkflows = 'test/workflows/seedsEverywhere.test.ts';
const troubleWorkflows = 'test/workflows/trouble.test.ts';

/** *What lands on Proxmox*: deletion, lines 396 to 405 of the page. */
export const aboutDeletion: readonly Statement[] = [
  {
    line: 396,
    statement: 'A deletion and a line of the same Proxy never run at the same time',
    proof: changed(
      'one run per UID does both, and is the lock',
      'design §5',
      testsIn(
        'test/steps/temporal.test.ts',
        'ensures a run once and leaves a running one untouched',
      ),
      testsIn(
        changeWorkflows,
        'awaits a running clone when the Proxy is deleted meanwhile, then removes what it made',
      ),
    ),
  },
  {
    line: 396,
    to: 397,
    statement: 'A deletion stops the VM, a paused one too',
    proof: proven(
      testsIn(
        removalStatesSteps,
        "in QEMU's state running: stopped, destroyed",
        "in QEMU's state paused: stopped, destroyed",
      ),
    ),
  },
  {
    line: 396,
    to: 397,
    statement: 'Whatever the VM is like, it is stopped',
    proof: changed(
      'not one that is protected: the deletion says so before it stops anything, and waits',
      'design §5',
      testsIn(
        'test/steps/removalWaits.test.ts',
        'tell of a protection before anything is stopped',
        'clear a protection that came from the template, unless our seed was ever attached',
      ),
    ),
  },
  {
    line: 397,
    statement: 'Then it destroys it, with purge',
    proof: proven(testsIn(removalSteps, 'take a running VM away, and every step may run twice')),
  },
  {
    line: 397,
    to: 398,
    statement: "Then it deletes the seed on the VM's node",
    proof: changed(
      'on every node that ever got it, wherever the VM is now',
      'design §5',
      testsIn(
        seedsEverywhereWorkflows,
        'are deleted where they were uploaded, though the VM is on another node now (cases.md 11 c)',
      ),
    ),
  },
  {
    line: 398,
    statement: 'Each of the three is a task that is waited for',
    proof: proven(
      testsIn(
        'test/workflows/budgets.test.ts',
        'of the stop names the task in the status, and the removal goes on where the VM stands',
        'of the destroy names the task in the status, and the removal goes on where the VM stands',
        'of the seedDelete names the task in the status, and the removal goes on where the VM stands',
      ),
      testsIn(
        'test/steps/removalWaits.test.ts',
        'do not destroy while a stop still holds the VM (cases.md 3)',
        'go on after a destroy that failed on the lock: the VM is there and is destroyed again (cases.md 3)',
      ),
      testsIn(
        deleteSeedSteps,
        'deletes the seed on the node it is asked for and is done when the node no longer lists it',
      ),
    ),
  },
  {
    line: 398,
    to: 399,
    statement: 'A VM that is gone, not ours or unmarked is left alone',
    proof: proven(
      testsIn(
        removalSteps,
        "leave another Proxy's VM at the VMID alone and call ours gone",
        'leave a VM of our name without a mark at the VMID alone and call ours gone',
        'leave a container at the VMID alone and call ours gone',
        'leave nothing at the VMID alone and call ours gone',
      ),
      testsIn(removalStatesSteps, 'never made: over, and nothing is changed'),
    ),
  },
  {
    line: 398,
    to: 399,
    statement: 'A VM of our name with another UID counts as gone',
    proof: changed(
      'the deletion tells of it, with both UIDs, and touches nothing',
      'cases.md 1 b; design §3',
      testsIn(
        removalSteps,
        'report a VM of our name with another UID, naming both, and do nothing to it',
      ),
    ),
  },
  {
    line: 399,
    to: 401,
    statement:
      'The seed is then looked for on every configured node, and a node that fails is logged and skipped',
    proof: proven(
      testsIn(
        deleteSeedSteps,
        'tells where else the seed is, and skips nodes and storages that cannot be asked',
      ),
      testsIn(
        seedsEverywhereWorkflows,
        'are deleted wherever else a node lists one',
        'do not hold up a deletion where nobody knew of them',
      ),
    ),
  },
  {
    line: 399,
    to: 401,
    statement: 'The seed goes although a VM of its name is left alone',
    proof: changed(
      'it stays for as long as a VM of its name is listed or one names it, and the deletion waits and names that VM',
      'design §3',
      testsIn(
        deleteSeedSteps,
        'keeps the seed while a VM of its name is listed',
        'keeps the seed that the VM it was made for still names, whatever that VM is called now',
      ),
    ),
  },
  {
    line: 401,
    statement: "On the VM's own node a seed that cannot be deleted fails the deletion",
    proof: proven(
      testsIn(
        troubleWorkflows,
        'keeps a deletion that fails until it succeeds, and says why meanwhile',
      ),
    ),
  },
  {
    line: 402,
    to: 404,
    statement:
      'Without Datastore.Allocate the deletion is stuck with that message until the privilege is granted',
    proof: changed(
      'it tries again slowly by itself, and at once on retry',
      'design §5',
      testsIn(deleteSeedSteps, 'names the privilege that is missing'),
      testsIn(
        troubleWorkflows,
        'a removal that fails for good is tried again slowly, and by retry at once',
      ),
    ),
  },
  {
    line: 404,
    to: 405,
    statement: 'When a deletion is over, nothing of the Proxy is left',
    proof: proven(
      testsIn(
        'test/steps/wholeLife.test.ts',
        'needs the API alone, and of it these requests only: no firewall, no snippet, no cloud-init drive',
      ),
      testsIn(
        'test/workflows/life.test.ts',
        'goes from Pending to Ready, and a deletion leaves nothing',
      ),
      testsIn(
        'test/system/life.test.ts',
        'a Managed Proxy serves, shows what it is, and leaves nothing behind',
      ),
    ),
  },
  {
    line: 404,
    to: 405,
    statement: 'A deletion always removes the VM',
    proof: changed(
      'deletionPolicy: Retain keeps a VM that was ever Ready, with its seed, and a forced deletion names what it leaves',
      'design §2, §5',
      testsIn(
        'test/workflows/policies.test.ts',
        'marks the VM as retained before the finalizer goes',
      ),
      testsIn(changeWorkflows, 'forceDelete ends a deletion in mid-wait and names what is left'),
    ),
  },
];
