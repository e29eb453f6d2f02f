import { changed, proven, testsIn, type Section } from '../statement.ts';
import { aboutFurtherGaps } from './knownGapsFurther.ts';

const allocate = 'test/steps/allocateVmid.test.ts';
const repair = 'test/workflows/repair.test.ts';
const observed = 'test/workflows/observed.test.ts';
const seeds = 'test/workflows/seedsEverywhere.test.ts';

/** *Known gaps*, lines 571 to 637 of the page. */
export const knownGaps: Section = {
  title: 'Known gaps',
  from: 571,
  to: 637,
  statements: [
    {
      line: 573,
      to: 576,
      statement: 'Making a VM holds one of three workers until the VM runs',
      proof: changed(
        'a wait holds nothing: it is a step of its own, on a queue of its own, and the line can be left meanwhile',
        'design §4',
        testsIn(repair, 'starts the old VM although a long clone of its replacement is under way'),
        testsIn(
          'test/workflows/change.test.ts',
          'cancels the wait for the agent when the Proxy is deleted',
        ),
      ),
    },
    {
      line: 577,
      to: 580,
      statement:
        'A clone lock that never goes costs ten minutes for each try, until a person clears it',
      proof: changed(
        'the VMID is given up at once, reported with the line that clears it, and the line goes on with the next one',
        'design §5',
        testsIn(
          'test/workflows/setbacks.test.ts',
          'locked for good is given up, once for each Proxy, and told with the line that removes it',
        ),
        testsIn(
          'test/system/failures.test.ts',
          'a clone lock that no token can clear is reported, and holds up no deletion',
        ),
      ),
    },
    {
      line: 581,
      to: 582,
      statement: 'The collection of orphans does not see seeds whose VM was destroyed by hand',
      proof: changed(
        'it lists seeds, too',
        'design §7',
        testsIn(
          'test/steps/listSeeds.test.ts',
          'finds seeds of ours on every node whose UID no Proxy and no VM has',
        ),
      ),
    },
    {
      line: 583,
      to: 585,
      statement: 'A migrated VM leaves its seed on the node it came from',
      proof: changed(
        'the seed is deleted where it was uploaded, and wherever else a node lists it',
        'design §5',
        testsIn(
          seeds,
          'are deleted where they were uploaded, though the VM is on another node now (cases.md 11 c)',
          'are deleted wherever else a node lists one',
        ),
      ),
    },
    {
      line: 586,
      to: 588,
      statement: 'A hand-made VM in the range costs a probe, and one named like a proxy is refused',
      proof: proven(
        testsIn(
          allocate,
          'probes past a VM of somebody else, whatever its lock',
          'refuses a VM with its name and no mark: OwnershipConflict',
        ),
      ),
    },
    {
      line: 589,
      to: 592,
      statement:
        'A clone to another node than that of the template is sent with a target, and works on shared storage only',
      proof: proven(
        testsIn(
          'test/steps/placementOnNodes.test.ts',
          'is cloned with a target where the disks are on shared storage, and its seed is where it is',
          'is refused by Proxmox where the disks are local, and the message says what helps',
        ),
        testsIn(
          'test/steps/cloneTemplate.test.ts',
          'asks for another node only where the template is not on it',
        ),
      ),
    },
    {
      line: 593,
      to: 595,
      statement: 'A VM whose agent option was taken away is replaced, not repaired',
      proof: changed(
        'it is repaired',
        'design §7, deliberate changes',
        testsIn(observed, 'sets tag and agent option again and leaves the VM running'),
        testsIn(
          'test/system/longLife.test.ts',
          'somebody takes its tag and agent away: both come back without a restart',
        ),
      ),
    },
    {
      line: 596,
      to: 602,
      statement: 'Without its agent a VM stays Provisioning, and what to look at is on the guest',
      proof: proven(
        testsIn(
          'test/steps/power.test.ts',
          'says what to look at on the guest when the agent stays silent',
        ),
        testsIn(
          'test/workflows/trouble.test.ts',
          'stays Provisioning for as long as the guest agent is silent, with the reason, and goes on when it answers',
        ),
      ),
    },
    {
      line: 603,
      to: 604,
      statement: 'Another CA needs a restart',
      proof: changed(
        'the file is read again, and a changed one counts for the next connection',
        'docs/configuration.md, caFile',
        testsIn(
          'test/steps/proxmoxTls.test.ts',
          'a changed file makes a new connection while requests under way end on the old one',
        ),
      ),
    },
    {
      line: 604,
      statement: 'The token may be changed at any time',
      proof: proven(
        testsIn(
          'test/steps/proxmoxTls.test.ts',
          'is read for every request, so that a rotated token counts at once',
        ),
      ),
    },
    {
      line: 605,
      to: 609,
      statement:
        'A node that stops answering makes looks and removals of its VMs wait; they are never taken for gone',
      proof: proven(
        testsIn(observed, 'only reports a node that does not answer, and goes on when it is back'),
        testsIn(
          'test/steps/removalStates.test.ts',
          'on a node that does not answer: waited for, and removed when the node is back',
        ),
      ),
    },
    {
      line: 611,
      to: 612,
      statement: 'The providers config is read once in the life of a process',
      proof: changed(
        'it is followed',
        'design §2',
        testsIn(
          'test/system/failures.test.ts',
          'the providers config is followed: mistakes, a new provider, a new image',
        ),
      ),
    },
    {
      line: 612,
      to: 613,
      statement: 'Two operators that share a cluster and a range destroy each other’s VMs',
      proof: changed(
        'every VM names its installation, and nothing of another one is ever touched',
        'design §3',
        testsIn(allocate, 'does not touch a VM that another installation made for this UID'),
        testsIn(
          'test/steps/orphanRemoval.test.ts',
          'is never one of another installation, whatever the input says',
        ),
      ),
    },
    {
      line: 613,
      to: 614,
      statement: 'A Proxy that names a provider that is not configured is latched',
      proof: changed(
        'the provider is waited for, and the configured ones are named',
        'design §4',
        testsIn(
          'test/workflows/unknownProvider.test.ts',
          'is named at once with the configured ones, while nobody takes the step',
          'is asked about again when the config changed, and explains a step that nobody took',
        ),
      ),
    },
    ...aboutFurtherGaps,
  ],
  quiet: [
    { line: 571, what: 'heading' },
    { line: 610, what: 'head of a list' },
    { line: 616, what: 'head of a list' },
  ],
};
