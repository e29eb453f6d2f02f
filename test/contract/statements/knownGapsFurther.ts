import { changed, proven, testsIn, type Statement } from '../statement.ts';

/** *Known gaps*: those beyond the design of the page, lines 618 to 636. */
export const aboutFurtherGaps: readonly Statement[] = [
  {
    line: 618,
    to: 624,
    statement:
      'A hibernated VM makes creation and deletion fail for good, until a person resumes or destroys it',
    proof: changed(
      'a destroy works on it, and so does a start: both are done',
      'pve/README 29; design §5, §7, deliberate changes',
      testsIn(
        'test/steps/removalStates.test.ts',
        'hibernated: destroyed without a stop, which the lock would refuse',
      ),
      testsIn('test/workflows/repair.test.ts', 'lets a hibernated VM go on'),
      testsIn('test/workflows/adopted.test.ts', 'that was hibernated is removed by a deletion'),
    ),
  },
  {
    line: 625,
    to: 627,
    statement: 'A seed is uploaded in one request, and a large one needs a larger bound',
    proof: changed(
      'in one request whose bound grows with its size',
      'design §2',
      testsIn(
        'test/steps/proxmoxLimits.test.ts',
        'the bound of an upload grows by a second per MiB',
      ),
      testsIn(
        'test/steps/proxmoxClient.test.ts',
        'an upload is one buffered multipart body: content first, file last, disposition first in each part',
      ),
    ),
  },
  {
    line: 628,
    to: 631,
    statement: 'The sample of cloud-init is an open proxy, and says so',
    proof: proven(testsIn('test/unit/apiSamples.test.ts', 'the open proxy is called one')),
  },
  {
    line: 632,
    to: 634,
    statement: 'Nothing was proven from end to end',
    proof: changed(
      'on the whole stack it is, over a simulator; a real host awaits its integration test',
      'docs/testing.md',
      testsIn(
        'test/system/life.test.ts',
        'a Managed Proxy serves, shows what it is, and leaves nothing behind',
      ),
      testsIn(
        'test/pve/onSimulator.test.ts',
        'makes a VM, finds it again, changes it and removes it: nothing is left',
      ),
    ),
  },
  {
    line: 634,
    to: 636,
    statement:
      'Three answers were never captured: of a missing storage, of a destroy of a hibernated VM and of a stop of a paused one',
    proof: changed(
      'all three were, and are replayed',
      'testdata/pve/9.2',
      testsIn('test/simulator/conformance.test.ts', 'reproduces at least 922 exchanges'),
      testsIn('test/steps/checkNode.test.ts', 'StorageNotFound: nobody defined it (400)'),
      testsIn('test/steps/removalStates.test.ts', "in QEMU's state paused: stopped, destroyed"),
    ),
  },
];
