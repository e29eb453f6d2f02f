import { changed, proven, testsIn, type Statement } from '../statement.ts';

const proxmoxTlsSteps = 'test/steps/proxmoxTls.test.ts';
const credentialsSystem = 'test/system/credentials.test.ts';
const deploymentSystem = 'test/system/deployment.test.ts';
const secretMountUnit = 'test/unit/secretMount.test.ts';

/** *Cluster-side setup*: Secret and credentials, lines 136 to 172 of the page. */
export const aboutTheSecret: readonly Statement[] = [
  {
    line: 138,
    to: 139,
    statement: 'The Secret has two keys: the token as one line, and the CA',
    proof: proven(
      testsIn(
        deploymentSystem,
        'make proxmox-token-secret makes the Secret, updates it, and keeps no second copy',
      ),
    ),
  },
  {
    line: 142,
    to: 147,
    statement: 'A target of the Makefile makes the Secret',
    proof: proven(
      testsIn(
        deploymentSystem,
        'make proxmox-token-secret makes the Secret, updates it, and keeps no second copy',
      ),
      testsIn(
        'test/docs/commands.test.ts',
        'every target of the Makefile that a page names exists',
      ),
    ),
  },
  {
    line: 149,
    to: 150,
    statement: 'The target also updates a Secret that exists',
    proof: proven(
      testsIn(
        deploymentSystem,
        'make proxmox-token-secret makes the Secret, updates it, and keeps no second copy',
      ),
    ),
  },
  {
    line: 150,
    to: 151,
    statement: 'PROXMOX_TOKEN_FILE and PROXMOX_CA_FILE name other files',
    proof: proven(
      testsIn(
        deploymentSystem,
        'make proxmox-token-secret makes the Secret, updates it, and keeps no second copy',
      ),
    ),
  },
  {
    line: 151,
    to: 154,
    statement:
      'Before anything is applied both files are checked: there, one line in the form of a token, a PEM certificate; and the token is not printed',
    proof: proven(
      testsIn(
        deploymentSystem,
        'make proxmox-token-secret names every problem of both files, without their content',
      ),
    ),
  },
  {
    line: 154,
    to: 155,
    statement: 'Without verification of the certificate a Secret with the token alone will do',
    proof: proven(
      testsIn(
        proxmoxTlsSteps,
        'insecureSkipTLSVerify accepts any certificate and reads no CA file',
      ),
      testsIn(
        secretMountUnit,
        'the worker has the Secret with token and CA where the samples look for them, read-only, and does without it',
      ),
    ),
  },
  {
    line: 157,
    to: 160,
    statement: 'The Secret is mounted read-only where the samples look for its files',
    proof: proven(
      testsIn(
        secretMountUnit,
        'the worker has the Secret with token and CA where the samples look for them, read-only, and does without it',
      ),
    ),
  },
  {
    line: 160,
    to: 162,
    statement:
      'The operator starts without the Secret, also with a provider configured, and asks Proxmox for nothing',
    proof: proven(
      testsIn(
        proxmoxTlsSteps,
        'a missing file is Transient CredentialsUnavailable and nothing is sent',
      ),
      testsIn(
        credentialsSystem,
        'a missing token file: warned of once, no request, and used when it comes',
      ),
    ),
  },
  {
    line: 162,
    to: 163,
    statement: 'A token file that is absent at the start is one WARNING line',
    proof: proven(
      testsIn(
        credentialsSystem,
        'a missing token file: warned of once, no request, and used when it comes',
      ),
      testsIn(
        'test/steps/proxmoxClients.test.ts',
        'name a token file that cannot be used and skipped TLS verification, and nothing else',
      ),
    ),
  },
  {
    line: 163,
    to: 164,
    statement:
      'Until the file is there, Proxies of the provider fail transiently; they recover by themselves',
    proof: proven(
      testsIn(
        credentialsSystem,
        'a missing token file: warned of once, no request, and used when it comes',
      ),
    ),
  },
  {
    line: 164,
    to: 165,
    statement: 'Meanwhile the health check says CredentialsUnavailable',
    proof: proven(
      testsIn(
        'test/steps/checkNode.test.ts',
        'CredentialsUnavailable: the token file is missing or holds no token; nothing is sent',
      ),
    ),
  },
  {
    line: 167,
    to: 169,
    statement:
      'The token file is read for every request, so a rotated token counts for the next one, without a restart',
    proof: proven(
      testsIn(proxmoxTlsSteps, 'is read for every request, so that a rotated token counts at once'),
      testsIn(
        credentialsSystem,
        'a rotated token counts at once, a wrong one is said and not hammered',
      ),
    ),
  },
  {
    line: 169,
    to: 171,
    statement: 'A rotated CA needs a restart, because the CA is cached from its first use on',
    proof: changed(
      'a CA file that changed counts for the next connection; requests under way end on the old one',
      'design §2: edits are picked up without a restart',
      testsIn(
        proxmoxTlsSteps,
        'a changed file makes a new connection while requests under way end on the old one',
      ),
    ),
  },
  {
    line: 171,
    statement: 'A CA file that is missing is waited for',
    proof: proven(
      testsIn(proxmoxTlsSteps, 'a missing file is Transient and counts as soon as it is there'),
    ),
  },
  {
    line: 171,
    to: 172,
    statement: 'A CA file without a certificate is a permanent error',
    proof: proven(
      testsIn(proxmoxTlsSteps, 'a file without a certificate, or with a broken one, is Permanent'),
    ),
  },
];
