import { changed, nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const hardware = 'test/unit/hardware.test.ts';
const templates = 'test/steps/templateChecks.test.ts';
const agentScript = testsIn('test/unit/guestAgent.test.ts', 'the guest-agent script');

/** *Proxmox prerequisites*: reachability and templates, lines 25 to 63 of the page. */
export const aboutTemplates: readonly Statement[] = [
  {
    line: 25,
    to: 27,
    statement:
      'The API must be reachable from the operator; when it is not, that is said and waited for',
    proof: proven(
      testsIn(
        'test/system/credentials.test.ts',
        'a cluster that is down: said at the first failure, and waited for',
      ),
    ),
  },
  {
    line: 28,
    to: 30,
    statement:
      'The seed is on ide2, and a template that brings a cloud-init drive of Proxmox would compete with it',
    proof: proven(
      testsIn(hardware, 'may have no cloud-init drive, wherever it is'),
      testsIn(
        'test/steps/halfDone.test.ts',
        'adopts what one that ended after configure has left, and finishes it',
      ),
    ),
  },
  {
    line: 30,
    to: 43,
    statement: 'How a template is made of a cloud image',
    proof: nonGoal('advice for the reader; docs/proxmox.md has it'),
  },
  {
    line: 45,
    statement: 'The VM boots from the first disk of the template',
    proof: proven(
      testsIn('test/steps/halfDone.test.ts', 'a line that knows nothing of an earlier one'),
      testsIn(
        'test/unit/drives.test.ts',
        'is the first disk of the order',
        'is not the CD-ROM that stands first',
      ),
    ),
  },
  {
    line: 45,
    to: 46,
    statement: 'The seed is one that cloud-init takes for a NoCloud data source',
    proof: proven(
      testsIn(
        'test/unit/seedTools.test.ts',
        'a usual seed › is found by its label, as cloud-init looks for it',
      ),
      testsIn('test/unit/cloudInit.test.ts', 'cloud-init reads user-data byte for byte'),
    ),
  },
  {
    line: 46,
    to: 47,
    statement: 'The guest agent may be in the template or be installed at the first boot',
    proof: proven(agentScript),
  },
  {
    line: 47,
    to: 49,
    statement:
      "A template is checked by its config before a Proxy's first clone, and no clone is sent of one that does not pass",
    proof: proven(
      testsIn(
        templates,
        'is refused when it is missing, before any clone',
        'is refused when it is an ordinary VM, before any clone',
        'is refused when it is a container, before any clone',
        'is refused when it has a cloud-init drive, before any clone',
      ),
    ),
  },
  {
    line: 49,
    statement: 'A template that does not pass is a permanent error',
    proof: changed(
      'Permanent, of the scope provider: Failed, and tried again every ten minutes and when the provider changes',
      'design §5, provider-scope failures recover by themselves',
      testsIn(templates, 'is refused when it is an ordinary VM, before any clone'),
      testsIn(
        'test/workflows/trouble.test.ts',
        'tries a failure of the provider again by itself after ten minutes',
      ),
    ),
  },
  {
    line: 51,
    statement: 'Refused: it is not a template',
    proof: proven(testsIn(hardware, 'must be a template', 'must be a template in fact')),
  },
  {
    line: 52,
    to: 54,
    statement: 'Refused: a disk slot whose value holds cloudinit',
    proof: proven(
      testsIn(
        hardware,
        'may have no cloud-init drive, wherever it is',
        'may have no cloud-init drive on a directory storage',
        'shows its cloud-init drive in disk slots only',
      ),
    ),
  },
  {
    line: 55,
    statement: 'Refused: no net0 although the config sets bridge or vlanTag',
    proof: proven(
      testsIn(
        templates,
        'is refused when it lacks a NIC when the config sets a bridge, and not without that setting',
        'is refused when it lacks a NIC when the config sets a VLAN, and not without that setting',
      ),
      testsIn(
        hardware,
        'must have a NIC to move',
        'needs neither NIC nor sized boot disk when nothing is to change on them',
      ),
    ),
  },
  {
    line: 56,
    to: 57,
    statement:
      'Refused: no boot disk, or one without a readable size, although the machine type sets diskGiB',
    proof: proven(
      testsIn(
        templates,
        'is refused when it lacks a boot disk when the machine type sets a size, and not without that setting',
        'is refused when it lacks the size of its boot disk when the machine type sets one, and not without that setting',
      ),
      testsIn(
        hardware,
        'must have a boot disk to grow',
        'must have a boot disk of known size to grow',
      ),
    ),
  },
  {
    line: 59,
    to: 60,
    statement: "A clone has the config of its template, so the template's is what is checked",
    proof: proven(testsIn('test/steps/halfDone.test.ts', 'what a clone inherits')),
  },
  {
    line: 61,
    to: 62,
    statement:
      'A template is looked at only for a clone; a VM that exists does not depend on it any more',
    proof: proven(
      testsIn(
        'test/steps/halfDone.test.ts',
        'does not matter to a VM that exists when its template is gone',
        'does not matter to a VM that exists when its template is an ordinary VM now',
        'does not matter to a VM that exists when its template got a cloud-init drive',
        'matters to a new VM when the template is gone',
        'matters to a new VM when the template is an ordinary VM now',
        'matters to a new VM when the template got a cloud-init drive',
      ),
    ),
  },
  {
    line: 62,
    to: 63,
    statement: 'The health check sees whether a template exists and is one, and no more',
    proof: proven(
      testsIn(
        templates,
        'looks into no template: one that no clone will be made of is fine, for as long as it is there',
      ),
      testsIn(
        'test/steps/checkNode.test.ts',
        'TemplateNotFound: a VMID that nobody has, or that is no template, and how many are there',
      ),
    ),
  },
];
