import { changed, nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const proxmoxTlsSteps = 'test/steps/proxmoxTls.test.ts';

/** *Cluster-side setup*: config and first Proxy, lines 173 to 229 of the page. */
export const aboutTheConfig: readonly Statement[] = [
  {
    line: 173,
    to: 191,
    statement: 'The config has an entry for the provider, and the sample shows every key',
    proof: proven(
      testsIn(
        'test/unit/apiSamples.test.ts',
        'providers.yaml is accepted as it is, and with every disabled setting switched on',
        'providers.yaml mentions every key there is',
      ),
    ),
  },
  {
    line: 193,
    to: 199,
    statement: "The URL's host must be one that the node's certificate names",
    proof: proven(
      testsIn(
        proxmoxTlsSteps,
        'a host that the certificate does not name is refused, naming host and names',
      ),
    ),
  },
  {
    line: 198,
    to: 199,
    statement:
      'Another host of the same node is CertificateInvalid in the health check and a permanent error of every call',
    proof: proven(
      testsIn(
        'test/steps/checkNode.test.ts',
        "CertificateInvalid: the URL's host is not in the certificate",
      ),
      testsIn(
        proxmoxTlsSteps,
        'a host that the certificate does not name is refused, naming host and names',
      ),
    ),
  },
  {
    line: 199,
    to: 203,
    statement: 'How to see what a certificate names',
    proof: nonGoal('a command for the reader; docs/proxmox.md has it'),
  },
  {
    line: 205,
    to: 207,
    statement: 'A certificate of somebody else is accepted when its CA is in caFile',
    proof: proven(
      testsIn(
        proxmoxTlsSteps,
        'a certificate of the configured CA is accepted by address and by name',
      ),
    ),
  },
  {
    line: 207,
    to: 208,
    statement: 'insecureSkipTLSVerify is logged as a WARNING line',
    proof: proven(
      testsIn(
        'test/steps/proxmoxClients.test.ts',
        'name a token file that cannot be used and skipped TLS verification, and nothing else',
      ),
    ),
  },
  {
    line: 210,
    statement: 'nodes holds names as Proxmox knows them, not addresses',
    proof: proven(
      testsIn(
        'test/unit/configReference.test.ts',
        'refuses the node «192.168.0.8», which would end up in paths and as a target',
      ),
    ),
  },
  {
    line: 210,
    to: 211,
    statement: 'One URL reaches the whole cluster',
    proof: proven(
      testsIn(
        'test/steps/placementOnNodes.test.ts',
        "is cloned from that node's own copy of the template, in place",
      ),
    ),
  },
  {
    line: 211,
    to: 213,
    statement: 'The config is read once, so an edit needs a restart',
    proof: changed(
      'every accepted edit counts for the next step; a bad one keeps the last accepted config',
      'design §2',
      testsIn(
        'test/system/failures.test.ts',
        'the providers config is followed: mistakes, a new provider, a new image',
      ),
    ),
  },
  {
    line: 215,
    to: 223,
    statement:
      'kubectl get px shows mode, provider, phase, address and health as a Proxy goes from Provisioning to Ready',
    proof: changed(
      'Pending comes first, and there is an age column',
      'design §2',
      testsIn(
        'test/system/objects.test.ts',
        'shows the columns of the design, the wide ones with -o wide',
      ),
      testsIn(
        'test/workflows/life.test.ts',
        'goes from Pending to Ready, and a deletion leaves nothing',
      ),
    ),
  },
  {
    line: 225,
    to: 228,
    statement: 'The address follows some time after the VM runs, when its guest agent is up',
    proof: proven(
      testsIn(
        'test/steps/power.test.ts',
        'asks again while the guest boots, and then gives the address of net0',
      ),
    ),
  },
];
