import { changed, nonGoal, proven, testsIn, type Statement } from '../statement.ts';

const censusSteps = 'test/steps/census.test.ts';
const halfDoneSteps = 'test/steps/halfDone.test.ts';
const seedAndConfigSteps = 'test/steps/seedAndConfig.test.ts';
const hardwareUnit = 'test/unit/hardware.test.ts';
const net0Unit = 'test/unit/net0.test.ts';

/** *What lands on Proxmox*: the config write, lines 332 to 351 of the page. */
export const aboutConfigWrite: readonly Statement[] = [
  {
    line: 332,
    to: 333,
    statement: 'After clone and seed one write of the config sets everything',
    proof: proven(
      testsIn(
        'test/steps/wholeLife.test.ts',
        'writes the documented keys of the config, and the mark, and nothing else',
      ),
    ),
  },
  {
    line: 337,
    statement: 'cores and memory come from the machine type',
    proof: proven(
      testsIn(
        'test/steps/settings.test.ts',
        'machine type: cores, memory, and the size of the boot disk',
      ),
      testsIn(hardwareUnit, "sets the specification's keys on a fresh clone"),
      testsIn(halfDoneSteps, 'adopts what one that ended after clone has left, and finishes it'),
    ),
  },
  {
    line: 338,
    statement: 'agent is 1',
    proof: proven(
      testsIn(
        hardwareUnit,
        "sets the specification's keys on a fresh clone",
        'corrects an agent that is off, and that alone',
      ),
    ),
  },
  {
    line: 339,
    statement: 'tags is proxy_operator',
    proof: proven(
      testsIn(hardwareUnit, "sets the specification's keys on a fresh clone"),
      testsIn(
        'test/steps/theLine.test.ts',
        'makes one VM with its seed, config, size and address, and every step may run twice',
      ),
    ),
  },
  {
    line: 340,
    statement: 'ide2 is the seed, as a CD-ROM',
    proof: proven(
      testsIn(
        hardwareUnit,
        "sets the specification's keys on a fresh clone",
        "corrects another VM's seed, and that alone",
      ),
    ),
  },
  {
    line: 341,
    statement:
      'net0 is written only when bridge or vlanTag is set, and only when something changes',
    proof: proven(
      testsIn(hardwareUnit, 'leaves net0 alone without bridge and VLAN, and where there is none'),
      testsIn(net0Unit, 'stays when nothing is set', 'stays when bridge and VLAN are right'),
    ),
  },
  {
    line: 341,
    statement:
      'In net0 bridge and tag are replaced or appended; model, MAC and every other option stay, however they are spelt',
    proof: proven(
      testsIn(
        net0Unit,
        'gets a tag',
        'gets another tag in its place',
        'gets another bridge in its place',
        'gets both appended',
        'is right after one rewrite, with everything else kept, for every spelling',
      ),
      testsIn(
        seedAndConfigSteps,
        'writes once, keeps the lines of others and moves net0 without changing its MAC',
      ),
    ),
  },
  {
    line: 343,
    to: 345,
    statement: "The template's agent options and tags give way",
    proof: proven(
      testsIn(
        hardwareUnit,
        'corrects further agent options, and that alone',
        'corrects another tag beside ours, and that alone',
      ),
      testsIn(
        halfDoneSteps,
        'is replaced where the specification says so (agent options, tags, an old ISO on ide2)',
      ),
    ),
  },
  {
    line: 343,
    to: 345,
    statement: 'They give way whenever the config is written',
    proof: changed(
      'tags that people added to a VM that runs stay beside ours',
      'design §5, §7',
      testsIn(seedAndConfigSteps, 'writes only mark and tag on a VM that runs'),
    ),
  },
  {
    line: 345,
    to: 346,
    statement: 'The tag is for people; the mark decides',
    proof: proven(
      testsIn(censusSteps, 'believes no name: the mark in the config decides'),
      testsIn('test/unit/ownership.test.ts', 'our name without a mark: unmarked'),
    ),
  },
  {
    line: 346,
    statement: 'The tag narrows down what the collection of orphans looks at',
    proof: changed(
      'the name does, because a tag is easily taken off',
      'design §7',
      testsIn(
        censusSteps,
        'asks nothing but to read, and reads no config of a VM that has a Proxy or another name',
      ),
    ),
  },
  {
    line: 346,
    to: 348,
    statement: 'Proxmox adds ide2 to the boot order, and the disk stays first',
    proof: proven(
      testsIn(halfDoneSteps, 'adopts what one that ended after clone has left, and finishes it'),
      testsIn(
        'test/simulator/checklistVms.test.ts',
        'makes a new MAC where none was given, orders tags, notes sizes and boots from new CD-ROMs',
      ),
    ),
  },
  {
    line: 348,
    to: 350,
    statement: 'When diskGiB is larger than the boot disk, a task grows it',
    proof: proven(
      testsIn(seedAndConfigSteps, 'grows the boot disk once and never shrinks it'),
      testsIn(hardwareUnit, 'asks for the absolute size, once', 'never shrinks'),
      testsIn(
        'test/steps/placementOnNodes.test.ts',
        'may round up: the disk is grown once, and never again',
        'may round up beyond what is wanted: nothing is asked for, and nothing shrunk',
      ),
    ),
  },
  {
    line: 348,
    to: 350,
    statement: 'The size in the config tells how large the disk is',
    proof: changed(
      "the volume's actual size does, since a resize without quorum grows the disk and then fails",
      'pve/cluster.md 25; design §5',
      testsIn(seedAndConfigSteps, "goes by the volume's actual size, not by what the config says"),
      testsIn(hardwareUnit, 'trusts the actual size, not the text in the config'),
    ),
  },
  {
    line: 349,
    to: 350,
    statement: 'The boot disk is the first disk of boot: order= that is no CD-ROM',
    proof: proven(testsIn('test/unit/drives.test.ts', 'the boot disk')),
  },
  {
    line: 350,
    to: 351,
    statement: 'The guest grows its root file system at its first boot',
    proof: nonGoal("cloud-init's growpart does"),
  },
];
