import { changed, proven, testsIn, type Statement } from '../statement.ts';

const classify = 'test/unit/classify.test.ts';
const tls = 'test/steps/proxmoxTls.test.ts';
const allocate = 'test/steps/allocateVmid.test.ts';

/** *Error classes*: what is permanent, line 559 of the page. */
export const aboutPermanent: readonly Statement[] = [
  {
    line: 559,
    statement: 'Permanent: a placement value that is not in the catalogue',
    proof: proven(
      testsIn(
        'test/steps/resolvePlacement.test.ts',
        "refuses in the specification's words and names what there is",
      ),
    ),
  },
  {
    line: 559,
    statement:
      'Permanent: a template that is missing, none, has a cloud-init drive, or lacks the NIC or the sized disk that the config needs',
    proof: proven(
      testsIn('test/steps/templateChecks.test.ts', 'a template in the catalogue'),
      testsIn(
        'test/unit/hardware.test.ts',
        'must have a NIC to move',
        'must have a boot disk of known size to grow',
      ),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: a malformed provider ID',
    proof: changed(
      'it is taken for an unknown VM: the deletion looks for VMs by their mark and ends',
      'cases.md 17 d',
      testsIn(
        'test/workflows/adopted.test.ts',
        'is found by its mark and removed though the status names an impossible VMID (cases.md 17 d)',
      ),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: 401, the token',
    proof: proven(
      testsIn(
        classify,
        '401 ^(No ticket|Authentication failed!) is Permanent Unauthorized provider',
      ),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: 403, a missing privilege, that to delete seeds too',
    proof: proven(
      testsIn(
        classify,
        '403 ^Permission check failed is Permanent Forbidden provider',
        'every 403 that names privilege and path ends with the line that grants it',
      ),
      testsIn('test/steps/deleteSeed.test.ts', 'names the privilege that is missing'),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: 400, with the errors of the parameters',
    proof: proven(
      testsIn(
        classify,
        String.raw`400 ^(Parameter verification failed\.|Bad Request) is Permanent BadRequest proxy`,
      ),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: any other 4xx',
    proof: changed(
      'not what says that a VMID is taken or a task unknown, nor 408, 425 and 429 of a proxy in between: these are transient',
      'testdata/pve/9.2; design §5',
      testsIn(
        classify,
        String.raw`400 vmid: VM \d+ already exists is Transient LostRace proxy`,
        '400 upid: no such task is Transient TaskUnknown proxy',
      ),
      testsIn(
        'test/unit/classifyTexts.test.ts',
        "answers of a proxy in front of the API are told apart from Proxmox's",
      ),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: a failed TLS verification',
    proof: proven(
      testsIn(
        tls,
        'another CA, or none, is Permanent CertificateInvalid and says what caFile must hold',
        'a host that the certificate does not name is refused, naming host and names',
        'an expired certificate is Permanent and says to renew it',
      ),
    ),
  },
  {
    line: 559,
    statement: 'Permanent: a token file that holds no token',
    proof: proven(testsIn(tls, 'a malformed file is Permanent TokenMalformed and is never quoted')),
  },
  {
    line: 559,
    statement: 'Permanent: a CA file without a certificate',
    proof: proven(testsIn(tls, 'a file without a certificate, or with a broken one, is Permanent')),
  },
  {
    line: 559,
    statement: "Permanent: a VM with the Proxy's VM name that has no mark, or another UID",
    proof: proven(
      testsIn(
        allocate,
        'refuses a VM with its name and no mark: OwnershipConflict',
        'names both UIDs of a VM with its name that it did not make',
      ),
    ),
  },
  {
    line: 559,
    statement: "Permanent: two VMs with the Proxy's VM name",
    proof: proven(testsIn(allocate, 'refuses two VMs with its name: DuplicateVm')),
  },
  {
    line: 559,
    statement: 'Permanent: our VM is hibernated, for making it and for removing it',
    proof: changed(
      'before Ready it is destroyed and made again, afterwards started; a deletion destroys it directly',
      'design §5, §7, deliberate changes; pve/README 29',
      testsIn(
        'test/workflows/adopted.test.ts',
        'that was hibernated before it was Ready is destroyed and made again, for it would wake up with an old seed',
      ),
      testsIn('test/workflows/repair.test.ts', 'lets a hibernated VM go on'),
      testsIn('test/steps/removalWaits.test.ts', 'destroy a hibernated VM directly'),
    ),
  },
];
