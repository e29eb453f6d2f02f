import { changed, proven, testsIn, type Statement } from '../statement.ts';

const wholeLifeSteps = 'test/steps/wholeLife.test.ts';
const cloudInitUnit = 'test/unit/cloudInit.test.ts';
const nocloudUnit = 'test/unit/nocloud.test.ts';
const seedToolsUnit = 'test/unit/seedTools.test.ts';

/** *What lands on Proxmox*: the seed, lines 353 to 366 of the page. */
export const aboutSeeds: readonly Statement[] = [
  {
    line: 353,
    to: 354,
    statement: 'The seed is an ISO 9660 image with the label cidata',
    proof: proven(
      testsIn(nocloudUnit, 'is labelled cidata, where cloud-init looks for it'),
      testsIn(seedToolsUnit, 'a usual seed'),
    ),
  },
  {
    line: 355,
    to: 356,
    statement: 'user-data is the cloud-init of the Proxy byte for byte',
    proof: proven(
      testsIn(nocloudUnit, 'passes user-data on byte for byte, whatever it is'),
      testsIn(cloudInitUnit, 'cloud-init reads user-data byte for byte'),
      testsIn('test/system/life.test.ts', 'cloud-init comes from a Secret, byte for byte'),
    ),
  },
  {
    line: 356,
    to: 357,
    statement: 'meta-data names the VM as instance and as host',
    proof: proven(
      testsIn(nocloudUnit, 'names the VM as instance and host'),
      testsIn(
        'test/steps/settings.test.ts',
        'nothing about vendor-data: the seed has the script that installs the agent, and names the VM',
      ),
    ),
  },
  {
    line: 357,
    to: 359,
    statement:
      "vendor-data has the guest-agent script as a shell script, so that user-data's packages cannot shadow it",
    proof: proven(
      testsIn(nocloudUnit, 'carries the guest-agent script alone as a script'),
      testsIn('test/unit/guestAgent.test.ts', 'the guest-agent script'),
    ),
  },
  {
    line: 358,
    to: 359,
    statement: 'Script and vendorData together are a MIME message of two parts',
    proof: proven(
      testsIn(seedToolsUnit, 'vendor-data of two parts'),
      testsIn(cloudInitUnit, 'into the script of the guest agent and a cloud-config'),
    ),
  },
  {
    line: 359,
    to: 360,
    statement: 'The seed is staged under /tmp',
    proof: changed(
      'it is built and sent from memory; nothing is written to a disk',
      'api-facts 5.9: a buffered body with its length',
      testsIn(
        'test/steps/proxmoxClient.test.ts',
        'an upload is one buffered multipart body: content first, file last, disposition first in each part',
      ),
    ),
  },
  {
    line: 360,
    to: 361,
    statement: 'It is uploaded through the storage of the node',
    proof: proven(
      testsIn(
        wholeLifeSteps,
        'needs the API alone, and of it these requests only: no firewall, no snippet, no cloud-init drive',
      ),
    ),
  },
  {
    line: 361,
    to: 364,
    statement:
      'An upload overwrites; seeds are built and uploaded anew on every attempt, and nothing is deleted before',
    proof: proven(
      testsIn(
        'test/steps/seedAndConfig.test.ts',
        'uploads again when asked again, to one file',
        'is tried again after a cut connection, and the truncated file is replaced (cases.md 15)',
      ),
    ),
  },
  {
    line: 364,
    to: 366,
    statement: 'No snippets, and so no cicustom: the API alone is used',
    proof: proven(
      testsIn(
        wholeLifeSteps,
        'needs the API alone, and of it these requests only: no firewall, no snippet, no cloud-init drive',
      ),
    ),
  },
];
