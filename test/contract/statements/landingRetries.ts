import { changed, nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const allocateVmidSteps = 'test/steps/allocateVmid.test.ts';
const halfDoneSteps = 'test/steps/halfDone.test.ts';

/** *What lands on Proxmox*: what a retry finds and what stays behind, lines 368 to 394 of the page. */
export const aboutRetries: readonly Statement[] = [
  {
    line: 368,
    statement: 'Every step may be repeated',
    proof: proven(
      testsIn(
        'test/steps/theLine.test.ts',
        'makes one VM with its seed, config, size and address, and every step may run twice',
      ),
      testsIn('test/workflows/everyStep.test.ts', 'every step'),
    ),
  },
  {
    line: 368,
    to: 370,
    statement:
      "After a crash in mid-clone the next try comes to the same VMID, waits for the clone's lock, and adopts the VM",
    proof: proven(
      testsIn(halfDoneSteps, 'waits for a clone under way and adopts what it makes'),
      testsIn('test/system/kill.test.ts', 'the worker, in four places at once'),
    ),
  },
  {
    line: 368,
    to: 370,
    statement: 'A clone is adopted whatever became of it',
    proof: changed(
      'one that lacks a disk of its template is destroyed and made again',
      'design §3, deliberate changes',
      testsIn(allocateVmidSteps, 'calls a stopped VM incomplete that lacks a disk of its template'),
      testsIn(
        'test/unit/nextMove.test.ts',
        'a half-made VM goes before another of its name is made',
      ),
    ),
  },
  {
    line: 371,
    to: 373,
    statement: 'A stopped VM of ours gets seed, config and size again, and is started',
    proof: proven(
      testsIn(
        halfDoneSteps,
        'writes seed, config and size again to a VM that stopped, and starts it',
      ),
    ),
  },
  {
    line: 371,
    to: 373,
    statement: 'A stopped VM gets them whenever it is found stopped',
    proof: changed(
      'until it was Ready once; after that it is started as it is, and only a lost seed is put right before',
      'design §5',
      testsIn(
        'test/workflows/repair.test.ts',
        'gives seed and config again to a stopped VM that was never Ready',
        'starts a stopped VM without writing its config, and is not Ready meanwhile',
      ),
      testsIn('test/workflows/lostSeed.test.ts', 'restores a lost seed before the start'),
    ),
  },
  {
    line: 372,
    to: 373,
    statement: 'A resize is left out once the disk is large enough',
    proof: proven(
      testsIn('test/steps/seedAndConfig.test.ts', 'grows the boot disk once and never shrinks it'),
    ),
  },
  {
    line: 373,
    statement: 'A VM that runs is left as it is',
    proof: proven(testsIn(halfDoneSteps, 'sends a running VM nothing at all')),
  },
  {
    line: 373,
    statement: 'A VM that runs is left as it is, also when its seed was never attached',
    proof: changed(
      'a clone that was started before that, by a person or by its node, is destroyed and made again',
      'a guest without cloud-init never becomes a proxy; design §5, until a VM was first Ready',
      testsIn(
        'test/workflows/adopted.test.ts',
        'is destroyed and made again: a guest without cloud-init never becomes a proxy',
      ),
    ),
  },
  {
    line: 375,
    to: 379,
    statement:
      'A lock of a clone that never clears makes every try wait out ten minutes, and then again',
    proof: changed(
      'a dead lock is told from a live one: the VMID is given up as a leftover, named with the line that removes it, and the line goes on with the next',
      'design §5',
      testsIn(
        allocateVmidSteps,
        'gives up a recorded VMID whose clone was killed, naming the line that removes it',
      ),
      testsIn(
        'test/system/failures.test.ts',
        'a clone lock that no token can clear is reported, and holds up no deletion',
      ),
    ),
  },
  {
    line: 378,
    to: 379,
    statement: 'Waiting for a lock never latches',
    proof: proven(
      testsIn(
        'test/workflows/locks.test.ts',
        'is waited for; after 10 minutes the status says so, since when, and how it is cleared; then the line goes on',
      ),
    ),
  },
  {
    line: 379,
    to: 384,
    statement: 'qm unlock, or qm destroy --purge, on the node clears it',
    proof: proven(
      testsIn(
        'test/steps/leftovers.test.ts',
        'can be removed when it is ours and unlocked',
        'is gone when its VMID is free or somebody else’s',
      ),
      testsIn(
        'test/workflows/locks.test.ts',
        'is waited for; after 10 minutes the status says so, since when, and how it is cleared; then the line goes on',
      ),
      testsIn(
        allocateVmidSteps,
        'gives up a recorded VMID whose clone was killed, naming the line that removes it',
      ),
    ),
  },
  {
    line: 386,
    to: 388,
    statement: 'A VM destroyed by hand leaves its seed, which nobody collects',
    proof: changed(
      'seeds of ours that belong to no Proxy and no VM are collected',
      'design §7',
      testsIn(
        'test/steps/listSeeds.test.ts',
        'finds seeds of ours on every node whose UID no Proxy and no VM has',
      ),
      testsIn(
        'test/unit/orphanRound.test.ts',
        'is deleted after the grace when it was examined and nothing needs it',
      ),
    ),
  },
  {
    line: 387,
    to: 389,
    statement: 'Seeds are named proxy-*-seed.iso',
    proof: proven(
      testsIn(
        'test/unit/identity.test.ts',
        'are named after the VM and found again by that name',
        'are not mistaken for other ISO files',
      ),
    ),
  },
  {
    line: 389,
    to: 394,
    statement: 'How seeds are listed and removed by hand',
    proof: nonGoal('commands for the reader; docs/operations.md has them'),
  },
];
