import { proven, testsIn, type Statement } from '../statement.ts';

const proxmoxTlsSteps = 'test/steps/proxmoxTls.test.ts';
const apiProvidersConfigUnit = 'test/unit/apiProvidersConfig.test.ts';
const configReferenceUnit = 'test/unit/configReference.test.ts';

/** *Config reference*: how the cluster is reached, lines 230 to 244 of the page. */
export const aboutReach: readonly Statement[] = [
  {
    line: 232,
    to: 234,
    statement: 'Keys that are not known are refused, at load',
    proof: proven(
      testsIn(configReferenceUnit, 'refuses a key it does not know, at every level'),
      testsIn(
        'test/system/failures.test.ts',
        'a worker does not start with a bad providers config: exit code 2, all problems',
      ),
    ),
  },
  {
    line: 234,
    to: 235,
    statement: 'Defaults are filled in',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
    ),
  },
  {
    line: 239,
    statement: 'url is required: https, a host, and no path',
    proof: proven(
      testsIn(
        configReferenceUnit,
        'needs url',
        'takes the url «https://192.168.0.8:8006»',
        'refuses the url «https://192.168.0.8:8006/api2/json»',
        'refuses the url «http://192.168.0.8:8006»',
        'refuses the url «192.168.0.8:8006»',
        'refuses the url «https://user:secret@192.168.0.8:8006»',
        'refuses the url «https://192.168.0.8:8006?x=1»',
      ),
    ),
  },
  {
    line: 239,
    statement: 'The client appends /api2/json to the url',
    proof: proven(testsIn('test/steps/proxmoxSmoke.test.ts', 'reads of the cluster')),
  },
  {
    line: 240,
    statement: 'tokenFile is required, and is a path',
    proof: proven(
      testsIn(configReferenceUnit, 'needs tokenFile'),
      testsIn(
        apiProvidersConfigUnit,
        'bad/tokenInsteadOfPath.yaml is refused with all problems of bad/tokenInsteadOfPath.problems.txt',
        'the problems of bad/tokenInsteadOfPath.yaml do not repeat the secret in the file',
      ),
    ),
  },
  {
    line: 240,
    statement:
      'The file holds one line of the form user@realm!tokenid=secret; anything else is refused, and never quoted',
    proof: proven(
      testsIn(proxmoxTlsSteps, 'a malformed file is Permanent TokenMalformed and is never quoted'),
      testsIn(
        'test/system/credentials.test.ts',
        'a token file that holds no token: Failed without repeating it, then mended',
      ),
    ),
  },
  {
    line: 240,
    statement: 'The line is sent as the API token of every request',
    proof: proven(
      testsIn(
        proxmoxTlsSteps,
        'is read for every request, so that a rotated token counts at once',
        'a user name with characters that end or alter the header is percent-encoded',
      ),
    ),
  },
  {
    line: 241,
    statement: 'caFile may be left out; the system decides then whom to trust',
    proof: proven(
      testsIn(
        'test/steps/systemRoots.test.ts',
        "the system's roots decide, those that an administrator added to it, too",
      ),
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        proxmoxTlsSteps,
        'another CA, or none, is Permanent CertificateInvalid and says what caFile must hold',
      ),
    ),
  },
  {
    line: 241,
    statement: 'caFile is a PEM bundle that is trusted for the certificate of the API',
    proof: proven(
      testsIn(
        proxmoxTlsSteps,
        'a certificate of the configured CA is accepted by address and by name',
      ),
    ),
  },
  {
    line: 242,
    statement: 'insecureSkipTLSVerify is off unless set, and then no certificate is verified',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        proxmoxTlsSteps,
        'insecureSkipTLSVerify accepts any certificate and reads no CA file',
      ),
    ),
  },
  {
    line: 243,
    statement: 'nodes is required: at least one, each once',
    proof: proven(
      testsIn(configReferenceUnit, 'needs nodes', 'refuses no node, and the same node twice'),
    ),
  },
  {
    line: 243,
    statement: 'Node names are lowercase letters, digits and dashes, because they end up in paths',
    proof: proven(
      testsIn(
        configReferenceUnit,
        'takes the node pv1-1',
        'refuses the node «PV1», which would end up in paths and as a target',
        'refuses the node «pv1.home», which would end up in paths and as a target',
        'refuses the node «a/b», which would end up in paths and as a target',
        'refuses the node «../x», which would end up in paths and as a target',
      ),
    ),
  },
  {
    line: 244,
    statement:
      'isoStorage is required and has no default; seeds are uploaded there and deleted from there',
    proof: proven(
      testsIn(configReferenceUnit, 'needs isoStorage'),
      testsIn(
        apiProvidersConfigUnit,
        'bad/storages.yaml is refused with all problems of bad/storages.problems.txt',
      ),
      testsIn(
        'test/steps/settings.test.ts',
        'isoStorage: holds the seed, which the VM has in its drive, and from there it is deleted',
      ),
    ),
  },
];
