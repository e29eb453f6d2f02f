import { changed, proven, testsIn, type Statement, type TestRef } from '../statement.ts';

const lines = 'test/steps/lines.test.ts';
const clients = 'test/steps/proxmoxClients.test.ts';
const ofVm = (fields: string): string => `provider, vmid, name, node${fields}`;
const lineTest = (msg: string, level: string, fields: string): TestRef[] =>
  testsIn(lines, `«${msg}» is a ${level} line with ${fields}`);

/** *Logging*: requests and what was not done, lines 426 to 441 of the page. */
export const aboutCalls: readonly Statement[] = [
  {
    line: 426,
    to: 428,
    statement: 'Each API request writes exactly one line, with the method of the seam',
    proof: proven(
      testsIn(lines, 'is written once for every request that was sent'),
      testsIn(clients, 'one debug line a request names call, objects, task, duration and span'),
    ),
  },
  {
    line: 428,
    to: 430,
    statement:
      'That line has the identifiers it was given, the task, the new VMID and name of a clone, the file name of an upload, the volume of a delete, and the duration',
    proof: proven(
      testsIn(
        lines,
        'clone has node, vmid, newid, name, upid, description, and its duration',
        'uploadIso has node, storage, filename, upid, bytes, and its duration',
        'deleteVolume has node, storage, volid, upid, and its duration',
        'start has node, vmid, upid, and its duration',
      ),
    ),
  },
  {
    line: 430,
    to: 431,
    statement: 'That of a request that failed has HTTP status and error',
    proof: proven(
      testsIn(clients, 'one debug line a request names call, objects, task, duration and span'),
      testsIn(
        lines,
        "has the agent's addresses once it answers, status and error while it does not",
      ),
    ),
  },
  {
    line: 431,
    to: 433,
    statement: 'A look at a running VM takes four requests, a creation a dozen or more',
    proof: proven(
      testsIn(
        'test/steps/wholeLife.test.ts',
        'takes a dozen requests or more to be made, and four for a look at it while it runs',
      ),
    ),
  },
  {
    line: 434,
    to: 435,
    statement:
      'A task that failed has a line with UPID and exit status, and one that ended with warnings, too',
    proof: proven(
      lineTest('proxmox task failed', 'debug', 'provider, upid, exitstatus'),
      lineTest('proxmox task finished with warnings', 'debug', 'provider, upid, exitstatus'),
    ),
  },
  {
    line: 436,
    to: 438,
    statement:
      'Nothing done has its line: the VM is gone already, is not ours (with its name), or carries no mark',
    proof: proven(
      lineTest('proxmox vm already gone', 'debug', ofVm('')),
      lineTest('proxmox vm at this vmid is not ours, left alone', 'debug', ofVm(', vmName')),
      lineTest('proxmox vm carries no proxy-operator mark, left alone', 'debug', ofVm('')),
    ),
  },
  {
    line: 439,
    statement: 'A node on which a seed could not be looked for has its line, and is skipped',
    proof: proven(
      testsIn(
        lines,
        '«proxmox seed delete failed on a node, skipped» is a debug line with node and reason',
      ),
    ),
  },
  {
    line: 440,
    statement: 'A VM that cannot be read while orphans are looked for is skipped with a line',
    proof: proven(
      testsIn(
        'test/steps/census.test.ts',
        'leaves out what is on a node that does not answer, and nothing else',
      ),
    ),
  },
  {
    line: 441,
    statement: 'A VMID that another VM has is told, and the next one probed',
    proof: proven(lineTest('proxmox vmid taken by another vm, probing on', 'debug', ofVm(''))),
  },
];

/** *Logging*: the level trace and secrets, lines 442 to 451 of the page. */
export const aboutTrace: readonly Statement[] = [
  {
    line: 442,
    to: 444,
    statement:
      'The level trace tells the resolved parameters: node, machine type, sizes, template, storages, bridge and VLAN tag',
    proof: proven(
      lineTest(
        'proxmox create resolved',
        'trace',
        'provider, node, machineType, cores, memoryMiB, diskGiB, templateVmid, storage, isoStorage, bridge, vlanTag',
      ),
    ),
  },
  {
    line: 444,
    statement: 'That line has the size of cloud-init',
    proof: changed(
      'a line of the seed has it: placement is resolved without reading cloud-init',
      'design §11, no secret and no bulk',
      lineTest('proxmox seed built', 'trace', ofVm(', cloudInitBytes')),
      testsIn(
        lines,
        'show the size of cloud-init and of the seed, and at no level the token or cloud-init itself',
      ),
    ),
  },
  {
    line: 444,
    to: 448,
    statement:
      'The lines of requests gain parameters of a config write, a summary of a config read, what a clone was given, the size of a resize, status, addresses and bytes',
    proof: proven(
      testsIn(
        clients,
        'trace adds parameters and sizes, and no level shows token, upload body or cloud-init values',
      ),
      testsIn(
        lines,
        'setVmConfig has node, vmid, set, and its duration',
        'getVmConfig has node, vmid, config, and its duration',
        'resize has node, vmid, upid, disk, size, and its duration',
        'getVmStatus has node, vmid, status, qmpstatus, and its duration',
        'getTask has upid, status, and its duration',
        "has the agent's addresses once it answers, status and error while it does not",
      ),
    ),
  },
  {
    line: 448,
    statement: 'A guest agent that answered has a trace line',
    proof: proven(lineTest('proxmox guest agent answered', 'trace', ofVm(', interfaces'))),
  },
  {
    line: 448,
    to: 449,
    statement: 'Each VM of a listing has a trace line',
    proof: proven(
      lineTest('proxmox listed instance', 'trace', ofVm('')),
      testsIn(
        'test/steps/census.test.ts',
        'counts in its line what was listed, looked at, managed and skipped, and has one for each VM of ours',
      ),
    ),
  },
  {
    line: 450,
    to: 451,
    statement:
      'At no level are cloud-init, token, content of the CA or bodies of uploads logged, and nothing is logged raw',
    proof: proven(
      testsIn(
        lines,
        'show the size of cloud-init and of the seed, and at no level the token or cloud-init itself',
      ),
      testsIn(
        clients,
        'trace adds parameters and sizes, and no level shows token, upload body or cloud-init values',
      ),
      testsIn('test/system/secrets.test.ts', 'are nowhere but where they belong'),
    ),
  },
];
