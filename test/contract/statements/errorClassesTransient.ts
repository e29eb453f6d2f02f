import { changed, proven, testsIn, type Statement } from '../statement.ts';

const classify = 'test/unit/classify.test.ts';
const tls = 'test/steps/proxmoxTls.test.ts';
const limits = 'test/steps/proxmoxLimits.test.ts';

/** *Error classes*: what is not found and what is transient, lines 560 and 561 of the page. */
export const aboutTransient: readonly Statement[] = [
  {
    line: 560,
    statement: 'NotFound from a look: the VMID is not among the resources of the cluster',
    proof: proven(
      testsIn(
        'test/workflows/repair.test.ts',
        'makes a VM again that is gone, and keeps the seed of its name',
      ),
      testsIn('test/system/longLife.test.ts', 'somebody destroys its VM, and another one is made'),
    ),
  },
  {
    line: 560,
    statement: 'One listing without the VM is enough to take it for gone',
    proof: changed(
      'not one whose rights do not prove it, and not when so many are missing at once that a person must confirm it',
      'design §7, MassAbsence',
      testsIn(
        'test/steps/existing.test.ts',
        'does not take it for gone without the right to see all VMs',
        'keeps a missing VM from being taken for gone, until a person confirms it',
      ),
      testsIn(
        'test/system/providers.test.ts',
        'two VMs that vanish at once are not made again before a person has confirmed it',
      ),
    ),
  },
  {
    line: 560,
    statement: 'NotFound: the answer that the config file of the VM does not exist',
    proof: proven(
      testsIn(
        classify,
        String.raw`500 Configuration file 'nodes.*\.conf' does not exist is NotFound VmVanished proxy`,
      ),
    ),
  },
  {
    line: 560,
    statement: 'NotFound: another name, or no mark, at the VMID',
    proof: changed(
      'another name is gone; a VM of our name whose mark was taken off is left alone and told',
      'design §3, in doubt',
      testsIn(
        'test/steps/existing.test.ts',
        'finds it gone when another VM has its VMID',
        'leaves a VM alone whose mark somebody took off',
      ),
    ),
  },
  {
    line: 560,
    statement: 'While a VM is made, its absence is transient',
    proof: proven(
      testsIn('test/steps/vanished.test.ts', 'a VM that is gone while it is made'),
      testsIn(
        'test/workflows/trouble.test.ts',
        'takes a VM that a write of the line did not find for a reason to look again, not for an end',
      ),
      testsIn(
        classify,
        String.raw`500 of clone unable to find configuration file for VM \d+ is Transient TemplateUnusable provider`,
      ),
    ),
  },
  {
    line: 560,
    statement: 'A deletion takes an absent VM for done',
    proof: proven(
      testsIn('test/steps/removal.test.ts', 'leave nothing at the VMID alone and call ours gone'),
      testsIn(
        'test/steps/power.test.ts',
        'takes a destroy that found nothing for an end that the next look proves',
      ),
    ),
  },
  {
    line: 561,
    statement: 'Transient: a token file or CA file that is missing',
    proof: proven(
      testsIn(
        tls,
        'a missing file is Transient CredentialsUnavailable and nothing is sent',
        'a missing file is Transient and counts as soon as it is there',
      ),
    ),
  },
  {
    line: 561,
    statement: 'Transient: errors of the network, and a cancellation',
    proof: proven(
      testsIn(
        limits,
        'a connection cut before or in an answer is Unreachable, unknown for a write, and not sent again',
        'a cancelled attempt ends its requests with the reason of the cancellation',
      ),
      testsIn(tls, 'a refused connection is Unreachable and no write can have happened'),
      testsIn(
        'test/unit/failure.test.ts',
        'of a cancelled attempt is the cancellation, whatever it met',
      ),
    ),
  },
  {
    line: 561,
    statement: 'Transient: a locked VM, told by an answer or seen in listing or config',
    proof: proven(
      testsIn(
        classify,
        '500 VM is locked is Transient WaitingForLock proxy',
        'task ^VM is locked is Transient WaitingForLock proxy',
      ),
      testsIn(
        'test/steps/allocateVmid.test.ts',
        'refuses a backup of its stopped VM: WaitingForLock',
      ),
    ),
  },
  {
    line: 561,
    statement: 'Transient: the node of the VM does not answer',
    proof: proven(
      testsIn('test/steps/allocateVmid.test.ts', 'waits for the node of a VM that may be its own'),
      testsIn(
        'test/steps/removalStates.test.ts',
        'on a node that does not answer: waited for, and removed when the node is back',
      ),
    ),
  },
  {
    line: 561,
    statement:
      'Transient: an answer about the agent that tells of no state, such as that the VM does not run',
    proof: proven(
      testsIn(classify, String.raw`500 VM \d+ is not running is Transient VmStopped proxy`),
    ),
  },
  {
    line: 561,
    statement: 'Transient: any other 5xx, 595 and 596 of pveproxy too',
    proof: proven(
      testsIn(
        classify,
        '595 ^(Connection refused|Connection timed out|No route to host)$ is Transient Unreachable provider',
        '596 ^(Connection timed out|Broken pipe)$ is Transient Unreachable provider',
        '501 not implemented|Unexpected content|chunked|too large|no formatter is Transient ApiError proxy',
      ),
    ),
  },
  {
    line: 561,
    statement: 'Some 500s are not transient: what a storage or template can never do',
    proof: changed(
      'permanent failures of the provider: trying again unchanged cannot help',
      'testdata/pve/9.2; design §5',
      testsIn(
        classify,
        "500 storage 'no-iso' does not support 'iso' content is Permanent StorageUnavailable provider",
        String.raw`500 can't clone VM to node 'pve2' \(VM uses local storage\) is Permanent TemplateUnusable provider`,
      ),
    ),
  },
  {
    line: 561,
    statement: 'Transient: a task that fails or runs out of its budget',
    proof: proven(
      testsIn('test/steps/timeouts.test.ts', 'the wait for a task'),
      testsIn(
        classify,
        'task ^unexpected status$|interrupted by signal$|already running$ is Transient TaskFailed proxy',
      ),
    ),
  },
  {
    line: 561,
    statement: 'Transient: no VMID is free among 32 candidates',
    proof: proven(testsIn('test/steps/allocateVmid.test.ts', 'says that all candidates are taken')),
  },
  {
    line: 561,
    statement: 'Transient: the wait for running ran out, or the VM stopped right after its start',
    proof: proven(
      testsIn(
        'test/steps/timeouts.test.ts',
        'ends 60 s after its start, asked once a second, with what helps',
      ),
      testsIn('test/steps/power.test.ts', 'says that the VM stopped again'),
    ),
  },
];
