import { changed, proven, testsIn, type Section } from '../statement.ts';

const host = 'test/pve/onSimulator.test.ts';

/** *Testing*, lines 638 to 648 of the page. */
export const testing: Section = {
  title: 'Testing',
  from: 638,
  to: 648,
  statements: [
    {
      line: 640,
      statement: 'Unit tests run over a fake in memory',
      proof: changed(
        'pure functions need none; steps run over a simulator that is held against the captures',
        'docs/decisions/0006',
        testsIn('test/simulator/conformance.test.ts', 'reproduces at least 922 exchanges'),
      ),
    },
    {
      line: 640,
      to: 642,
      statement: 'The client is tested over TLS, with the answers that were captured',
      proof: proven(
        testsIn(
          'test/steps/proxmoxTls.test.ts',
          'a certificate of the configured CA is accepted by address and by name',
        ),
        testsIn(
          'test/unit/proxmoxAnswers.test.ts',
          'every answer to a request of ours is understood',
        ),
        testsIn(
          'test/unit/classify.test.ts',
          'every failure in the captures has an expectation and every expectation a failure',
        ),
      ),
    },
    {
      line: 642,
      to: 646,
      statement:
        'An integration test runs against a real host named by variables, with make test-integration-proxmox',
      proof: proven(
        testsIn(
          host,
          'makes a VM, finds it again, changes it and removes it: nothing is left',
          'removes what it made when a step fails, and says which and why',
          'names every variable that is missing, and one that is wrong with what it may be',
        ),
        testsIn(
          'test/docs/commands.test.ts',
          'every target of the Makefile that a page names exists',
        ),
      ),
    },
    {
      line: 646,
      to: 648,
      statement: 'The health check alone can be run against the same host, and creates nothing',
      proof: proven(testsIn(host, 'says that it is ready, and creates nothing')),
    },
  ],
  quiet: [{ line: 638, what: 'heading' }],
};
