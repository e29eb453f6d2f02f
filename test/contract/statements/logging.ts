import {
  changed,
  proven,
  testsIn,
  type Section,
  type Statement,
  type TestRef,
} from '../statement.ts';

const lines = 'test/steps/lines.test.ts';
const clients = 'test/steps/proxmoxClients.test.ts';
const ofVm = (fields: string): string => `provider, vmid, name, node${fields}`;
const lineTest = (msg: string, level: string, fields: string): TestRef[] =>
  testsIn(lines, `«${msg}» is a ${level} line with ${fields}`);

const always: readonly Statement[] = [
  {
    line: 409,
    statement: 'The lines of the provider come from a logger named after it',
    proof: changed(
      'JSON lines of the worker, with the step they were written in',
      'design §11',
      testsIn(
        'test/unit/runtime/logger.test.ts',
        'writes JSON lines with level, program and message',
      ),
      testsIn(lines, 'name provider, step and run, and inside a step its trace and span'),
    ),
  },
  {
    line: 410,
    statement: 'Every line names the provider, as configured',
    proof: proven(
      testsIn(lines, 'name provider, step and run, and inside a step its trace and span'),
    ),
  },
  {
    line: 410,
    to: 411,
    statement: 'Every line about an instance has VMID, name and node',
    proof: proven(
      lineTest('proxmox vm ensured running', 'debug', ofVm('')),
      lineTest('proxmox vm already gone', 'debug', ofVm('')),
    ),
  },
  {
    line: 411,
    to: 412,
    statement: 'Every line inside a traced operation has the IDs of trace and span',
    proof: proven(
      testsIn(lines, 'name provider, step and run, and inside a step its trace and span'),
      testsIn(
        'test/steps/runtime/telemetry.test.ts',
        'puts the ids of the span into the lines logged inside it',
      ),
    ),
  },
  {
    line: 414,
    to: 416,
    statement:
      'At every start a line that begins with WARNING tells of a token file that cannot be read, with path and reason, and one of verification that is off',
    proof: proven(
      testsIn(
        clients,
        'name a token file that cannot be used and skipped TLS verification, and nothing else',
      ),
    ),
  },
];

const outcomes: readonly Statement[] = [
  {
    line: 417,
    statement: 'The level debug has a tier of its own',
    proof: proven(testsIn('test/unit/runtime/logger.test.ts', 'keeps each tier to itself')),
  },
  {
    line: 418,
    statement: 'A VM that was made sure to run has its line',
    proof: proven(lineTest('proxmox vm ensured running', 'debug', ofVm(''))),
  },
  {
    line: 419,
    statement: 'A VM that was adopted has its line, with status and qmpstatus',
    proof: proven(lineTest('proxmox vm adopted', 'debug', ofVm(', status, qmpstatus'))),
  },
  {
    line: 420,
    to: 421,
    statement:
      'A VM that was looked at has its line, with state, address, UID, status and qmpstatus',
    proof: proven(
      lineTest('proxmox vm fetched', 'debug', ofVm(', state, ip, uid, status, qmpstatus')),
    ),
  },
  {
    line: 421,
    statement: 'A VM that was not found has its line, with the reason',
    proof: proven(lineTest('proxmox vm not found', 'debug', ofVm(', reason'))),
  },
  {
    line: 422,
    to: 423,
    statement:
      'A VM that was deleted has its line, which says whether there was one of ours to destroy',
    proof: proven(
      lineTest('proxmox vm deleted', 'debug', 'provider, vmid, destroyed'),
      testsIn(
        lines,
        'say whether a VM was destroyed: once when it was, and not when there was none of ours',
      ),
    ),
  },
  {
    line: 423,
    to: 424,
    statement: 'A listing has its line, with the counts of VMs, candidates and managed ones',
    proof: proven(lineTest('proxmox vms listed', 'debug', 'provider, vms, candidates, managed')),
  },
  {
    line: 424,
    statement: 'The line of a listing counts the VMs that were skipped',
    proof: changed(
      'the listing of a deletion is complete or fails, so there is nothing to count',
      'design §5, proof',
      testsIn(
        'test/steps/deleteSeed.test.ts',
        'is no proof while a VM that may be its own is on a silent node',
      ),
    ),
  },
  {
    line: 424,
    to: 425,
    statement: 'A node that was checked has its line, with ready, reason and latency',
    proof: proven(
      testsIn(lines, '«proxmox node checked» is a debug line with ready, reason and latency'),
    ),
  },
];

const calls: readonly Statement[] = [
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
    proof: changed(
      'a look counts the cluster’s listing, config, status and agent, too; requests are counted by a metric',
      'design §10',
      testsIn(clients, 'every request is counted with its method and how it ended'),
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
    proof: changed(
      'the round leaves out what is on a silent node, and its line of the request that failed says so',
      'design §7',
      testsIn(
        'test/steps/census.test.ts',
        'leaves out what is on a node that does not answer, and nothing else',
      ),
      testsIn(clients, 'one debug line a request names call, objects, task, duration and span'),
    ),
  },
  {
    line: 441,
    statement: 'A VMID that another VM has is told, and the next one probed',
    proof: proven(lineTest('proxmox vmid taken by another vm, probing on', 'debug', ofVm(''))),
  },
];

const trace: readonly Statement[] = [
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
    proof: proven(lineTest('proxmox listed instance', 'trace', ofVm(''))),
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

/** *Logging*, lines 407 to 452 of the page. */
export const logging: Section = {
  title: 'Logging',
  from: 407,
  to: 452,
  statements: [...always, ...outcomes, ...calls, ...trace],
  quiet: [{ line: 407, what: 'heading' }],
};
