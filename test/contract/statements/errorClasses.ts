import { changed, proven, testsIn, type Section } from '../statement.ts';
import { aboutPermanent } from './errorClassesPermanent.ts';
import { aboutTransient } from './errorClassesTransient.ts';

const classify = 'test/unit/classify.test.ts';
const failure = 'test/unit/failure.test.ts';
const trouble = 'test/workflows/trouble.test.ts';

/** *Error classes*, lines 545 to 570 of the page. */
export const errorClasses: Section = {
  title: 'Error classes',
  from: 545,
  to: 570,
  statements: [
    {
      line: 547,
      to: 550,
      statement: 'Every error is classified once; one that has its class from its source keeps it',
      proof: proven(
        testsIn(
          classify,
          'every failure in the captures has an expectation and every expectation a failure',
        ),
        testsIn(
          failure,
          'of a class from its source is not looked at again, whatever its text says',
        ),
      ),
    },
    {
      line: 550,
      to: 551,
      statement: 'Permanent is latched as Failed until the spec changes',
      proof: proven(
        testsIn(trouble, 'latches a permanent failure of the Proxy until its spec changes'),
      ),
    },
    {
      line: 550,
      to: 551,
      statement: 'Every permanent failure is latched so',
      proof: changed(
        'one that has to be mended at the provider is tried again every ten minutes, and when its config, credentials or health change',
        'design §5, deliberate changes',
        testsIn(
          trouble,
          'tries a failure of the provider again by itself after ten minutes',
          'tries a failure of the provider again when the provider changed',
        ),
      ),
    },
    {
      line: 551,
      statement: 'A VM that is not found by a look is made again',
      proof: proven(
        testsIn(
          'test/workflows/repair.test.ts',
          'makes a VM again that is gone, and keeps the seed of its name',
        ),
        testsIn(
          'test/steps/existing.test.ts',
          'does not take it for gone without the right to see all VMs',
        ),
      ),
    },
    {
      line: 551,
      to: 552,
      statement: 'Everything else is tried again with backoff',
      proof: proven(
        testsIn(trouble, 'shows a transient failure at its first attempt and gets over it'),
        testsIn(failure, 'that nobody foresaw is Transient, and its text stays out of the history'),
      ),
    },
    {
      line: 552,
      to: 555,
      statement: 'No class for quotas: a lack of space is transient',
      proof: proven(
        testsIn(classify, 'task No space left on device$ is Transient StorageUnavailable provider'),
      ),
    },
    ...aboutPermanent,
    ...aboutTransient,
    {
      line: 563,
      to: 565,
      statement: 'A guest agent that does not run yet is a state of booting, not an error',
      proof: proven(
        testsIn(
          'test/steps/power.test.ts',
          'asks again while the guest boots, and then gives the address of net0',
        ),
      ),
    },
    {
      line: 565,
      to: 566,
      statement: 'A VM without its agent option counts as stopped, and is replaced',
      proof: changed(
        'the option is set again and the VM runs on: it takes effect with its next start',
        'design §7, deliberate changes',
        testsIn(
          'test/workflows/observed.test.ts',
          'sets tag and agent option again and leaves the VM running',
        ),
        testsIn('test/steps/power.test.ts', 'says that the agent option is off'),
      ),
    },
    {
      line: 568,
      statement: "Messages name VMIDs, nodes, storages and UPIDs, and have Proxmox's own text",
      proof: proven(
        testsIn(
          classify,
          "every message names the attempt, the provider and the answer in Proxmox's own words",
        ),
        testsIn(
          'test/unit/classifyTexts.test.ts',
          'a storage or node that Proxmox names is a fact',
          'the lock of a locked VM is a fact, in answers and in tasks',
        ),
        testsIn('test/steps/timeouts.test.ts', 'the wait for a task'),
      ),
    },
    {
      line: 569,
      statement: 'They never have the token, the content of the CA or cloud-init',
      proof: proven(
        testsIn('test/system/secrets.test.ts', 'are nowhere but where they belong'),
        testsIn(
          'test/steps/proxmoxClient.test.ts',
          'a token that comes back in an error is cut out of it',
        ),
        testsIn(
          'test/steps/proxmoxTls.test.ts',
          'a malformed file is Permanent TokenMalformed and is never quoted',
        ),
      ),
    },
  ],
  quiet: [
    { line: 545, what: 'heading' },
    { line: 557, to: 558, what: 'head of the table' },
  ],
};
