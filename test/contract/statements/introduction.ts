import { changed, proven, testsIn, type Section } from '../statement.ts';

/** *The proxmox provider*, lines 1 to 20 of the page. */
export const introduction: Section = {
  title: 'The proxmox provider',
  from: 1,
  to: 20,
  statements: [
    {
      line: 5,
      statement: 'A Managed Proxy runs as a VM on a Proxmox VE cluster',
      proof: proven(
        testsIn(
          'test/system/life.test.ts',
          'a Managed Proxy serves, shows what it is, and leaves nothing behind',
        ),
      ),
    },
    {
      line: 8,
      to: 11,
      statement:
        "The cluster's REST API and a token are all that is used: no SSH, no shell on a node",
      proof: proven(
        testsIn(
          'test/steps/wholeLife.test.ts',
          'needs the API alone, and of it these requests only: no firewall, no snippet, no cloud-init drive',
        ),
      ),
    },
    {
      line: 10,
      to: 11,
      statement: 'No library is needed for it beyond the HTTP client at hand',
      proof: changed(
        'undici, the HTTP client of Node itself in a version of our choice; every package has its reason',
        'docs/decisions/dependencies.md',
        testsIn(
          'test/docs/decisions.test.ts',
          'every dependency is explained where it belongs, and nothing else is',
        ),
      ),
    },
    {
      line: 13,
      statement: 'A VM is a full clone of a template',
      proof: proven(
        testsIn(
          'test/steps/cloneTemplate.test.ts',
          'makes a full clone that is marked from the start',
        ),
        testsIn(
          'test/steps/halfDone.test.ts',
          'does not reach the disks of a VM: they are copies, none is linked to the template',
        ),
      ),
    },
    {
      line: 13,
      to: 16,
      statement:
        "The seed is built by the operator itself, uploaded to a storage of the VM's node and attached as a CD-ROM; size, start and address follow",
      proof: proven(
        testsIn(
          'test/steps/theLine.test.ts',
          'makes one VM with its seed, config, size and address, and every step may run twice',
        ),
      ),
    },
    {
      line: 16,
      to: 19,
      statement: 'Every error text that is matched was captured from a real host',
      proof: changed(
        'texts that only the source of Proxmox VE shows are matched too, and marked as such; what is unknown is Transient',
        'the facts read from its source; design §5',
        testsIn(
          'test/unit/classify.test.ts',
          'every failure in the captures has an expectation and every expectation a failure',
        ),
        testsIn(
          'test/unit/classifyTexts.test.ts',
          'failures known from the source of Proxmox only',
        ),
      ),
    },
  ],
  quiet: [
    { line: 1, to: 3, what: 'path and heading' },
    { line: 6, to: 7, what: 'history of the provider in its own repository' },
  ],
};
