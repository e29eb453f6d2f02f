import { changed, nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const placementOnNodesSteps = 'test/steps/placementOnNodes.test.ts';
const settingsSteps = 'test/steps/settings.test.ts';
const proxmoxLimitsSteps = 'test/steps/proxmoxLimits.test.ts';
const apiProvidersConfigUnit = 'test/unit/apiProvidersConfig.test.ts';
const cloudInitUnit = 'test/unit/cloudInit.test.ts';
const configReferenceUnit = 'test/unit/configReference.test.ts';
const net0Unit = 'test/unit/net0.test.ts';
const nocloudUnit = 'test/unit/nocloud.test.ts';

/** *Config reference*: what VMs are like, lines 245 to 254 of the page. */
export const aboutVms: readonly Statement[] = [
  {
    line: 245,
    statement:
      "storage is where the clone's disks go, by default the storage of the template's disks",
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(placementOnNodesSteps, 'is the one in the config, else that of the template'),
    ),
  },
  {
    line: 246,
    statement: 'bridge replaces that of the cloned net0; by default it stays',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(net0Unit, 'gets another bridge in its place', 'stays when nothing is set'),
      testsIn(
        settingsSteps,
        'bridge: on the NIC, which keeps the MAC that the clone got',
        'neither bridge nor vlanTag: on the NIC, which keeps the MAC that the clone got',
      ),
    ),
  },
  {
    line: 247,
    statement:
      'vlanTag is 1 to 4094, and replaces or adds the tag of the cloned net0; by default it stays',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        configReferenceUnit,
        'takes vlanTag from 1 to 4094, and refuses one less and one more',
      ),
      testsIn(net0Unit, 'gets a tag', 'gets another tag in its place'),
      testsIn(settingsSteps, 'vlanTag: on the NIC, which keeps the MAC that the clone got'),
    ),
  },
  {
    line: 248,
    statement:
      'vmidRange is 100000 to 199999 unless set; from 100 to 999999999, and its lowest below its highest',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        configReferenceUnit,
        'takes vmidRange.min from 100 to 199998, and refuses one less and one more',
        'takes vmidRange.max from 100001 to 999999999, and refuses one less and one more',
        'takes a range of VMIDs only when its lowest is below its highest',
      ),
      testsIn(
        apiProvidersConfigUnit,
        'bad/vmidRangeBounds.yaml is refused with all problems of bad/vmidRangeBounds.problems.txt',
      ),
    ),
  },
  {
    line: 249,
    statement: 'At least one template, named by its key, with a VMID of at least 100',
    proof: proven(
      testsIn(
        configReferenceUnit,
        'needs templates',
        'refuses catalogues that are empty',
        'takes templates.t.vmid from 100 to 999999999, and refuses one less and one more',
      ),
    ),
  },
  {
    line: 249,
    statement: 'A template has one VMID',
    proof: changed(
      'or one per node: a copy for each, cloned in place',
      'design §2, templates.<key>.vmids',
      testsIn(
        placementOnNodesSteps,
        "is cloned from that node's own copy of the template, in place",
      ),
      testsIn(
        apiProvidersConfigUnit,
        "a VM is cloned from its node's copy, else from the one template",
        'bad/templateCopies.yaml is refused with all problems of bad/templateCopies.problems.txt',
      ),
    ),
  },
  {
    line: 250,
    statement: 'At least one machine type, with cores and memoryMiB above zero',
    proof: proven(
      testsIn(
        configReferenceUnit,
        'needs machineTypes',
        'refuses catalogues that are empty',
        'takes machineTypes.m.cores from 1 to 8192, and refuses one less and one more',
        'takes machineTypes.m.memoryMiB from 1 to 67108864, and refuses one less and one more',
      ),
      testsIn(settingsSteps, 'machine type: cores, memory, and the size of the boot disk'),
    ),
  },
  {
    line: 250,
    statement: 'diskGiB may be left out; the boot disk is grown to it and never shrunk',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        configReferenceUnit,
        'takes machineTypes.m.diskGiB from 1 to 1048576, and refuses one less and one more',
      ),
      testsIn(
        'test/steps/seedAndConfig.test.ts',
        'grows the boot disk once and never shrinks it',
        'asks Proxmox for nothing when the machine type sets no size',
      ),
    ),
  },
  {
    line: 251,
    statement: 'requestTimeoutSeconds is 30 unless set, and bounds one request with its answer',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        configReferenceUnit,
        'takes requestTimeoutSeconds from 1 to 3600, and refuses one less and one more',
      ),
      testsIn(
        proxmoxLimitsSteps,
        'a request without an answer, or with half of one, ends at its bound',
      ),
      testsIn(
        'test/steps/proxmoxClients.test.ts',
        'each provider is reached with its own settings, and a request bound of requestTimeoutSeconds',
      ),
    ),
  },
  {
    line: 251,
    statement:
      'An upload is one request under the same bound, so a large vendorData needs a larger one',
    proof: changed(
      'its bound grows by a second per MiB',
      'design §2',
      testsIn(proxmoxLimitsSteps, 'the bound of an upload grows by a second per MiB'),
    ),
  },
  {
    line: 252,
    statement: "vendorData is put on every seed beside the Proxy's user-data",
    proof: proven(
      testsIn(settingsSteps, 'vendorData: on the seed as it is, without the script'),
      testsIn(nocloudUnit, "carries the provider's vendor-data alone as it is"),
      testsIn(cloudInitUnit, "into the provider's own alone, when no guest agent is wanted"),
    ),
  },
  {
    line: 252,
    statement: 'Beside the agent script vendorData is a part of a MIME message',
    proof: proven(
      testsIn(settingsSteps, 'vendorData beside the script: a MIME message that has both'),
      testsIn('test/unit/seedTools.test.ts', 'vendor-data of two parts'),
      testsIn(cloudInitUnit, 'into the script of the guest agent and a cloud-config'),
    ),
  },
  {
    line: 252,
    statement: 'cloud-init lets user-data win over keys of vendor-data',
    proof: nonGoal('behaviour of cloud-init; docs/configuration.md says so'),
  },
  {
    line: 253,
    statement: 'installGuestAgent is on unless set, and adds the script',
    proof: proven(
      testsIn(
        apiProvidersConfigUnit,
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        settingsSteps,
        'nothing about vendor-data: the seed has the script that installs the agent, and names the VM',
        'installGuestAgent: false leaves the script out',
      ),
    ),
  },
];
