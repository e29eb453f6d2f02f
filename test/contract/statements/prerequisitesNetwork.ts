import { nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const settings = 'test/steps/settings.test.ts';
const wholeLife = 'test/steps/wholeLife.test.ts';
const allocating = 'test/steps/allocateVmid.test.ts';
const agentScript = testsIn('test/unit/guestAgent.test.ts', 'the guest-agent script');

/** *Proxmox prerequisites*: network, VMIDs and the check, lines 105 to 135 of the page. */
export const aboutNetworks: readonly Statement[] = [
  {
    line: 105,
    to: 107,
    statement:
      "A VM keeps the one NIC of its template, moved to the config's bridge or VLAN when that is set",
    proof: proven(
      testsIn(
        'test/unit/net0.test.ts',
        'is right after one rewrite, with everything else kept, for every spelling',
        'stays when nothing is set',
      ),
      testsIn(
        settings,
        'bridge and vlanTag: on the NIC, which keeps the MAC that the clone got',
        'neither bridge nor vlanTag: on the NIC, which keeps the MAC that the clone got',
      ),
    ),
  },
  {
    line: 106,
    to: 107,
    statement: 'Its address comes from the DHCP of that network: none is given to it',
    proof: proven(
      testsIn(
        wholeLife,
        'writes the documented keys of the config, and the mark, and nothing else',
      ),
      testsIn('test/unit/nocloud.test.ts', 'has no vendor-data when there is none'),
    ),
  },
  {
    line: 107,
    to: 110,
    statement: "The guest agent is the only source of the VM's address",
    proof: proven(
      testsIn(
        'test/steps/power.test.ts',
        'asks again while the guest boots, and then gives the address of net0',
      ),
    ),
  },
  {
    line: 108,
    to: 109,
    statement: 'A script in vendor-data installs the guest agent at the first boot',
    proof: proven(
      testsIn(
        settings,
        'nothing about vendor-data: the seed has the script that installs the agent, and names the VM',
      ),
      agentScript,
    ),
  },
  {
    line: 111,
    to: 113,
    statement: 'installGuestAgent: false takes the script, and with it the need for a mirror, away',
    proof: proven(testsIn(settings, 'installGuestAgent: false leaves the script out')),
  },
  {
    line: 113,
    to: 115,
    statement: 'The probe goes through the address that clients get from discovery',
    proof: proven(
      testsIn(
        'test/system/life.test.ts',
        'a Managed Proxy serves, shows what it is, and leaves nothing behind',
      ),
    ),
  },
  {
    line: 115,
    to: 116,
    statement: 'spec.port is no business of the provider: another port is no other VM',
    proof: proven(
      testsIn(
        'test/unit/specHash.test.ts',
        'does not depend on the order of fields, nor on fields that are none of its business',
      ),
    ),
  },
  {
    line: 116,
    statement: 'No firewall of Proxmox is configured',
    proof: proven(
      testsIn(
        wholeLife,
        'needs the API alone, and of it these requests only: no firewall, no snippet, no cloud-init drive',
      ),
    ),
  },
  {
    line: 117,
    to: 118,
    statement: 'VMIDs come from vmidRange, by default 100000 to 199999',
    proof: proven(
      testsIn(
        'test/unit/apiProvidersConfig.test.ts',
        'good/minimal.yaml is accepted with the defaults of good/minimal.json',
      ),
      testsIn(
        'test/unit/identity.test.ts',
        'tries up to 32 different VMIDs of the range, each one after the other and wrapping',
      ),
    ),
  },
  {
    line: 118,
    to: 120,
    statement: 'A VM made by hand in the range costs a probe',
    proof: proven(
      testsIn(
        allocating,
        'probes past a VM of somebody else, whatever its lock',
        'probes past a container',
      ),
    ),
  },
  {
    line: 119,
    to: 120,
    statement: 'A VM made by hand that is named like a proxy is refused',
    proof: proven(testsIn(allocating, 'refuses a VM with its name and no mark: OwnershipConflict')),
  },
  {
    line: 122,
    to: 134,
    statement:
      "How the API is asked from the operator's point of view, with the token on no command line",
    proof: nonGoal('a check for the reader; docs/proxmox.md has it'),
  },
];
