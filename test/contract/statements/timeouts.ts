import { changed, proven, testsIn, type Section, type Statement } from '../statement.ts';

const timeoutSteps = 'test/steps/timeouts.test.ts';
const limits = 'test/steps/proxmoxLimits.test.ts';
const tls = 'test/steps/proxmoxTls.test.ts';
const budgets = 'test/workflows/budgets.test.ts';
const numbers =
  'are 10 s for the TCP connect, 10 s for the TLS handshake and 30 s for the whole unless the config says otherwise';
const ends = (kind: string, minutes: number): string =>
  `${kind} ends after ${minutes} min, names the UPID, leaves the task alone, and the next wait finds its result`;

const rows: readonly Statement[] = [
  {
    line: 474,
    to: 476,
    statement: 'Each request and each wait has a bound of its own; nobody else sets one',
    proof: proven(testsIn(timeoutSteps, 'the wait for a task', 'bounds of a request')),
  },
  {
    line: 480,
    statement: 'A TCP connect may take 10 s',
    proof: proven(
      testsIn(timeoutSteps, numbers),
      testsIn(tls, 'a peer that drops connection requests ends at the bound of the TCP connect'),
    ),
  },
  {
    line: 481,
    statement: 'A TLS handshake may take 10 s',
    proof: proven(
      testsIn(timeoutSteps, numbers),
      testsIn(tls, 'a peer that accepts and stays silent ends at the bound of the TLS handshake'),
    ),
  },
  {
    line: 482,
    statement: 'A request may take requestTimeoutSeconds, 30 s by default, its answer included',
    proof: proven(
      testsIn(timeoutSteps, numbers),
      testsIn(limits, 'a request without an answer, or with half of one, ends at its bound'),
    ),
  },
  {
    line: 482,
    statement: 'An upload has the same bound',
    proof: changed(
      'it grows by a second for each MiB',
      'design §2',
      testsIn(limits, 'the bound of an upload grows by a second per MiB'),
    ),
  },
  {
    line: 483,
    statement: 'A clone may take 10 minutes',
    proof: proven(testsIn(timeoutSteps, ends('clone', 10))),
  },
  {
    line: 483,
    statement: 'A lock of the VM is waited for 10 minutes',
    proof: proven(
      testsIn(
        'test/workflows/locks.test.ts',
        'is waited for; after 10 minutes the status says so, since when, and how it is cleared; then the line goes on',
      ),
      testsIn(
        'test/steps/lockBudget.test.ts',
        'runs out after 10 minutes, counts once, and names the VM, its lock and the command that clears it',
      ),
    ),
  },
  {
    line: 484,
    statement: 'Upload, resize, start and stop may take 2 minutes each',
    proof: proven(
      testsIn(
        timeoutSteps,
        ends('upload', 2),
        ends('resize', 2),
        ends('start', 2),
        ends('stop', 2),
      ),
    ),
  },
  {
    line: 485,
    statement: 'A destroy may take 5 minutes',
    proof: proven(testsIn(timeoutSteps, ends('destroy', 5))),
  },
  {
    line: 486,
    statement: 'The delete of a seed may take a minute',
    proof: proven(testsIn(timeoutSteps, ends('seedDelete', 1))),
  },
  {
    line: 487,
    statement: 'A VM must run 60 s after its start',
    proof: proven(
      testsIn(timeoutSteps, 'ends 60 s after its start, asked once a second, with what helps'),
    ),
  },
  {
    line: 488,
    statement: 'Tasks are asked about once a second',
    proof: changed(
      'sooner at first: after 5 % of what was waited, at least 100 ms and at most a second',
      'design §5',
      testsIn(
        timeoutSteps,
        'asks after max(100 ms, 5 % of what it has waited), never less often than once a second',
      ),
    ),
  },
  {
    line: 488,
    statement: 'The state of a VM is asked for once a second',
    proof: proven(
      testsIn(timeoutSteps, 'ends 60 s after its start, asked once a second, with what helps'),
    ),
  },
];

const consequences: readonly Statement[] = [
  {
    line: 490,
    statement: 'A wait that runs out is a transient error that names the UPID',
    proof: proven(
      testsIn(timeoutSteps, ends('clone', 10)),
      testsIn(budgets, 'a budget that runs out'),
    ),
  },
  {
    line: 490,
    to: 492,
    statement: 'Its task goes on, and the next try finds what it did',
    proof: proven(
      testsIn(
        budgets,
        'of the clone names the task in the status, and the next round finds the VM instead of making another',
        'of the destroy names the task in the status, and the removal goes on where the VM stands',
      ),
    ),
  },
  {
    line: 492,
    to: 493,
    statement:
      'A task that ends otherwise than with OK or warnings is transient, with the text of Proxmox',
    proof: proven(
      testsIn(
        'test/unit/classify.test.ts',
        "every message names the attempt, the provider and the answer in Proxmox's own words",
      ),
      testsIn('test/unit/classifyTexts.test.ts', 'OK and WARNINGS are success'),
    ),
  },
  {
    line: 492,
    to: 493,
    statement: 'That holds for every text',
    proof: changed(
      'a task that fails on a missing privilege is the permanent failure that the same answer would be',
      'pve/README 11',
      testsIn(
        'test/unit/classifyTexts.test.ts',
        'a 403 that only appears in a task has the same class and remedy',
      ),
    ),
  },
  {
    line: 495,
    statement: 'Requests share one client and its idle connections',
    proof: proven(
      testsIn(
        limits,
        'a connection is used again, and dropped before the server would close it after 5 s idle',
      ),
    ),
  },
  {
    line: 495,
    to: 496,
    statement: 'Four idle connections are kept, for 90 s',
    proof: changed(
      'up to eight, for 4 s: pveproxy itself closes one that was idle for 5 s',
      'design §4, deliberate changes',
      testsIn(
        limits,
        'a connection is used again, and dropped before the server would close it after 5 s idle',
      ),
      testsIn(
        limits,
        'at most 8 requests run at once, of which 4 writes, and waiting writes hold up no read',
      ),
    ),
  },
  {
    line: 496,
    to: 498,
    statement: 'A cancelled or overlong request ends only itself',
    proof: proven(
      testsIn(
        timeoutSteps,
        'end that request only: others of the client go on over their connections',
      ),
    ),
  },
  {
    line: 498,
    to: 499,
    statement: 'HTTP/1.1 is spoken only',
    proof: proven(testsIn(tls, 'HTTP/1.1 is spoken with a server that also offers HTTP/2')),
  },
  {
    line: 499,
    to: 501,
    statement:
      'Making and removing take a lock of the name, so that a deletion and the collection of orphans never meet; looks take none',
    proof: changed(
      'one run per UID makes, removes and collects, so there is nothing to lock',
      'design §5',
      testsIn(
        'test/workflows/change.test.ts',
        'awaits a running clone when the Proxy is deleted meanwhile, then removes what it made',
      ),
      testsIn(
        'test/steps/temporal.test.ts',
        'ensures a run once and leaves a running one untouched',
      ),
    ),
  },
];

/** *Timeouts*, lines 472 to 502 of the page. */
export const timeouts: Section = {
  title: 'Timeouts',
  from: 472,
  to: 502,
  statements: [...rows, ...consequences],
  quiet: [
    { line: 472, what: 'heading' },
    { line: 478, to: 479, what: 'head of the table' },
  ],
};
