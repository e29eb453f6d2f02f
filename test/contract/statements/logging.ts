import {
  changed,
  proven,
  testsIn,
  type Section,
  type Statement,
  type TestRef,
} from '../statement.ts';
import { aboutCalls, aboutTrace } from './loggingCalls.ts';

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
      testsIn(lines, 'name provider, VMID, name and node, each that is about an instance'),
      testsIn(
        'test/steps/census.test.ts',
        'leaves out what is on a node that does not answer, and nothing else',
      ),
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
      lineTest('proxmox vm deleted', 'debug', ofVm(', destroyed')),
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
    statement: 'The line of a listing for the collection counts the VMs that were skipped',
    proof: proven(
      testsIn(
        'test/steps/census.test.ts',
        'counts in its line what was listed, looked at, managed and skipped, and has one for each VM of ours',
      ),
    ),
  },
  {
    line: 424,
    statement: 'Any listing skips what it cannot read',
    proof: changed(
      'that of a deletion is complete or fails, so it has nothing to count',
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

/** *Logging*, lines 407 to 452 of the page. */
export const logging: Section = {
  title: 'Logging',
  from: 407,
  to: 452,
  statements: [...always, ...outcomes, ...aboutCalls, ...aboutTrace],
  quiet: [{ line: 407, what: 'heading' }],
};
