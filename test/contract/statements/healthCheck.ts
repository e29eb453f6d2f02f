import { changed, proven, testsIn, type Section, type Statement } from '../statement.ts';

const checks = 'test/steps/checkNode.test.ts';
const publish = 'test/steps/publishHealth.test.ts';
const rounds = 'test/workflows/provider.test.ts';
const system = 'test/system/providers.test.ts';

const round: readonly Statement[] = [
  {
    line: 505,
    to: 506,
    statement:
      'Every configured node is checked every --provider-check-interval, a minute by default',
    proof: proven(
      testsIn(
        rounds,
        'is checked at once when it is told that something changed, else after the interval',
        'has every node checked at once, and shows them in the order of the config',
      ),
      testsIn('test/unit/runtime/env.test.ts', 'has the documented defaults'),
    ),
  },
  {
    line: 506,
    to: 508,
    statement: 'The result stands in the ProviderHealth object named after the provider',
    proof: proven(
      testsIn(system, 'every node shows with its facts, and the columns add up'),
      testsIn(
        publish,
        'shows targets in the order they come in, how many are ready, and the first reason that is none',
      ),
    ),
  },
  {
    line: 509,
    statement: 'A gauge tells for each target whether it is up',
    proof: proven(
      testsIn(
        'test/unit/worker/targetMetric.test.ts',
        'has a series for every target, which goes with its target or provider',
      ),
    ),
  },
  {
    line: 509,
    to: 511,
    statement:
      'There is a target for each node, named after it, with the URL as its address, in the order of the config, and all are checked at the same time',
    proof: proven(
      testsIn(rounds, 'has every node checked at once, and shows them in the order of the config'),
    ),
  },
  {
    line: 513,
    to: 514,
    statement: 'A check reads the token file first, for its ID',
    proof: proven(
      testsIn(
        checks,
        'CredentialsUnavailable: the token file is missing or holds no token; nothing is sent',
      ),
    ),
  },
  {
    line: 514,
    to: 518,
    statement:
      'It asks for version, status of the node, status of the seed storage and the list of VMs',
    proof: changed(
      'and for the privileges of the token, so that all that are missing are told before a VM is made',
      'cases.md 23',
      testsIn(
        checks,
        'sends the four requests of the specification in order, and one about privileges',
      ),
    ),
  },
  {
    line: 514,
    to: 515,
    statement: 'Checks use the connections of everybody',
    proof: changed(
      'each check has a socket of its own, so that steps that hang do not make a node look down',
      'design §4',
      testsIn(
        'test/steps/proxmoxClients.test.ts',
        'a check has one socket of its own, whatever the steps and the checks of other nodes wait for',
      ),
    ),
  },
  {
    line: 516,
    to: 517,
    statement: 'The seed storage must exist, be active and hold iso content',
    proof: proven(
      testsIn(
        checks,
        'StorageNotFound: nobody defined it (400)',
        'StorageNotFound: it is not mounted',
        'StorageNotFound: it holds no iso',
      ),
    ),
  },
  {
    line: 517,
    to: 518,
    statement: 'Every configured template must exist and be a template',
    proof: proven(
      testsIn(
        checks,
        'TemplateNotFound: a VMID that nobody has, or that is no template, and how many are there',
      ),
    ),
  },
  {
    line: 518,
    to: 519,
    statement: 'A check that runs out of time cancels its own requests only',
    proof: proven(testsIn(checks, 'Timeout: the check ran out of its time, and nobody else did')),
  },
  {
    line: 521,
    to: 525,
    statement:
      'The details of a target grow with what was learnt: storage, token ID without its secret, version, kernel, free space, templates found; one that fails late still tells the rest',
    proof: proven(
      testsIn(
        checks,
        'finds a node where VMs can be made Reachable, and tells its facts',
        'a target is not ready',
      ),
    ),
  },
  {
    line: 525,
    to: 526,
    statement: 'There is no sign of a quota; free space of the storage is shown instead',
    proof: proven(
      testsIn(checks, 'finds a node where VMs can be made Reachable, and tells its facts'),
    ),
  },
];

const reasons: readonly Statement[] = [
  {
    line: 530,
    statement: 'Reachable: ready',
    proof: proven(
      testsIn(checks, 'finds a node where VMs can be made Reachable, and tells its facts'),
    ),
  },
  {
    line: 531,
    statement:
      'CredentialsUnavailable: the token file is missing or malformed, and nothing was sent',
    proof: proven(
      testsIn(
        checks,
        'CredentialsUnavailable: the token file is missing or holds no token; nothing is sent',
      ),
    ),
  },
  {
    line: 532,
    statement:
      'CertificateInvalid: verification failed, or the CA file is missing or holds no certificate',
    proof: proven(
      testsIn(
        checks,
        'CertificateInvalid: the CA file is missing, holds no certificate, or is not the one that signed',
        "CertificateInvalid: the URL's host is not in the certificate",
      ),
    ),
  },
  {
    line: 533,
    statement: 'Unreachable: no connection, one that was cut, or 595 and 596 of pveproxy',
    proof: proven(
      testsIn(
        checks,
        'Unreachable: nobody listens, or the connection is cut in the middle of an answer',
        'Unreachable: 595, the node behind the API does not answer',
        'Unreachable: 596, the node behind the API does not answer',
      ),
    ),
  },
  {
    line: 534,
    statement: 'Unauthorized: 401',
    proof: proven(testsIn(checks, 'Unauthorized: the secret is wrong, and it shows nowhere')),
  },
  {
    line: 535,
    statement: 'Forbidden: 403, with path and privilege',
    proof: proven(
      testsIn(
        'test/steps/checkPrivileges.test.ts',
        'Forbidden: all that is missing, with the lines that grant it, before any VM is made',
        'a refused request is explained by the whole list, too',
      ),
    ),
  },
  {
    line: 536,
    statement:
      'Timeout: --provider-check-timeout, 15 s by default, ran out, or one request ran out of its own bound',
    proof: proven(
      testsIn(
        checks,
        'Timeout: the check ran out of its time, and nobody else did',
        'Timeout: one request ran out of requestTimeoutSeconds while the check had time',
      ),
      testsIn('test/unit/runtime/env.test.ts', 'has the documented defaults'),
    ),
  },
  {
    line: 537,
    statement:
      'StorageNotFound: the storage answers with a 500, is not active or holds no iso; the message has the text of Proxmox',
    proof: proven(
      testsIn(
        checks,
        'StorageNotFound: Proxmox answers with a 500',
        'StorageNotFound: it is disabled',
        'StorageNotFound: it is for other nodes only',
      ),
    ),
  },
  {
    line: 538,
    statement: 'TemplateNotFound: a configured VMID does not exist or is no template',
    proof: proven(
      testsIn(
        checks,
        'TemplateNotFound: a VMID that nobody has, or that is no template, and how many are there',
      ),
    ),
  },
  {
    line: 539,
    statement: 'APIError: any other failure, with the text of Proxmox',
    proof: proven(
      testsIn(
        checks,
        'APIError: an answer that is no JSON, and any other failure, with the text of Proxmox',
      ),
    ),
  },
  {
    line: 541,
    to: 543,
    statement:
      'The check does not look inside templates: that is found out when one is about to be cloned',
    proof: proven(
      testsIn(
        checks,
        'sends the four requests of the specification in order, and one about privileges',
      ),
      testsIn(
        'test/steps/templateChecks.test.ts',
        'looks into no template: one that no clone will be made of is fine, for as long as it is there',
        'is refused when it has a cloud-init drive, before any clone',
      ),
    ),
  },
];

/** *Health check*, lines 503 to 544 of the page. */
export const healthCheck: Section = {
  title: 'Health check',
  from: 503,
  to: 544,
  statements: [...round, ...reasons],
  quiet: [
    { line: 503, what: 'heading' },
    { line: 528, to: 529, what: 'head of the table' },
  ],
};
