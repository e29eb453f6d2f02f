import assert from 'node:assert/strict';
import { setTimeout as realDelay } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { encodeRequest, sendBytes } from './conformance/wire.ts';
import { FAULT_WORDS } from './nameFaults.ts';
import { withLab, type TestLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const START = `${ONE}/101/status/start`;

/** What a client sees of the first start, and what has become of the VM and of the task. */
interface Seen {
  /** Status and reason; `closed`; `nothing` when no answer came. */
  answer: string;
  isJson: boolean;
  running: boolean;
  /** How the start's task ended; `null`: there is none. */
  exit: string | null;
  seconds: number;
}

const OK: Seen = { answer: '200 OK', isJson: true, running: true, exit: 'OK', seconds: 0 };
const REFUSED = { isJson: false, running: false, exit: null, seconds: 0 };

/** Each kind by its word. */
const EXPECTED: Readonly<Record<string, Seen>> = {
  '595': { ...REFUSED, answer: '595 No route to host' },
  '596-before': { ...REFUSED, answer: '596 Broken pipe' },
  '596-after': { ...OK, answer: '596 Connection timed out', isJson: false },
  'reset-before': { ...REFUSED, answer: 'closed' },
  'reset-after': { ...OK, answer: 'closed', isJson: false },
  'lost-upid': {
    ...OK,
    answer: "500 can't lock file '/var/log/pve/tasks/.active.lock' - got timeout",
  },
  '401': { ...REFUSED, answer: '401 Authentication failed!' },
  '403': { ...REFUSED, answer: '403 Permission check failed', isJson: true },
  'hang-before': { ...REFUSED, answer: 'nothing' },
  'hang-after': { ...OK, answer: 'nothing', isJson: false },
  malformed: { ...OK, isJson: false },
  slow: { ...OK, seconds: 20 },
  fails: {
    ...OK,
    running: false,
    exit: "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
  },
  warns: { ...OK, exit: 'WARNINGS: 1' },
  killed: { ...OK, running: false, exit: 'unexpected status' },
  vanishes: { ...OK, exit: 'no such task' },
};

/** How a fault is ordered; returns the name of the VM it is to meet. */
const CHANNELS: Readonly<Record<string, (lab: TestLab, word: string) => Promise<string>>> = {
  'the queue': (lab, word) => {
    const action = FAULT_WORDS[word];
    assert.ok(action !== undefined);
    lab.simulator.faults.push({ method: 'POST', path: '/status/start$', name: 'proxy-7', action });
    return Promise.resolve('proxy-7');
  },
  'the name of the object': (_lab, word) => Promise.resolve(`proxy-fault-start-${word}`),
  'the admin port': async (lab, word) => {
    const rule = { path: '/101/status/start$', action: FAULT_WORDS[word] };
    const body = JSON.stringify(rule);
    const pushed = await fetch(`${lab.simulator.adminUrl}/faults`, { method: 'POST', body });
    assert.equal(pushed.status, 200, await pushed.text());
    return 'proxy-7';
  },
};

async function startOnce(lab: TestLab): Promise<Seen> {
  const { simulator } = lab;
  const { hostname, port } = new URL(simulator.url);
  const request = { method: 'POST', path: `/api2/json${START}` };
  const bytes = encodeRequest(request, { text: (text) => text });
  const before = lab.clock.now();
  const target = { host: hostname, port: Number(port), ca: lab.ca };
  const reactions: Awaited<ReturnType<typeof sendBytes>>[] = [];
  void sendBytes(target, bytes, () => undefined).then((reaction) => reactions.push(reaction));
  const seen = (): (typeof simulator.requests)[number] | undefined =>
    simulator.requests.findLast(({ path }) => path === START);
  const isSettled = (): boolean => reactions.length > 0;
  for (let patience = 100; !isSettled() && patience > 0;) {
    await realDelay(1);
    if (seen()?.answered === false) await lab.clock.step();
    else if (seen() !== undefined) patience -= 1;
  }
  const answer = reactions[0] ?? 'nothing';
  const seconds = Math.round(((seen()?.durationMs ?? 0) / 1000) * 10) / 10;
  await lab.clock.advanceTo(before + 40_000);
  const task = simulator.tasks.find(({ type }) => type === 'qmstart');
  const exit = task?.vanished === true ? 'no such task' : (task?.exitstatus ?? null);
  const running = simulator.cluster.vms.get(101)?.running !== null;
  if (typeof answer === 'string') return { answer, isJson: false, running, exit, seconds };
  const said = `${answer.status} ${answer.reason}`;
  return { answer: said, isJson: isJson(answer.body), running, exit, seconds };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('every kind of fault', () => {
  it('has its expectation here', () => {
    assert.deepEqual(Object.keys(EXPECTED).toSorted(), Object.keys(FAULT_WORDS).toSorted());
  });
  for (const [channel, order] of Object.entries(CHANNELS)) {
    for (const [word, expected] of Object.entries(EXPECTED)) {
      it(`${word} is reached by ${channel}, once`, () =>
        withLab(async (lab) => {
          const name = await order(lab, word);
          await lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name });
          assert.deepEqual(await startOnce(lab), expected);
          lab.simulator.powerOffVm(101);
          await lab.advance(5);
          assert.equal(await lab.exit('POST', START), 'OK');
        }));
    }
  }

  it('lasts when the name says so', () =>
    withLab(async (lab) => {
      const name = 'fault-config-596-after-always';
      await lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name });
      for (const tags of ['first', 'second']) {
        const put = await lab.ask('PUT', `${ONE}/101/config`, { tags });
        assert.equal(put.status, 596);
        assert.equal((await lab.config(101))['tags'], tags);
      }
    }));

  it('meets clones by the new name, uploads and deletions by the file, tasks by their VM', () =>
    withLab(async (lab) => {
      const clone = await lab.ask('POST', `${ONE}/9001/clone`, {
        newid: 101,
        name: 'fault-clone-403',
      });
      assert.equal(clone.status, 403);
      const parts = [
        { name: 'content', data: 'iso' },
        { name: 'filename', filename: 'fault-upload-401-fault-unseed-595.iso', data: 'x' },
      ];
      const path = '/nodes/pve1/storage/proxy-seeds';
      const upload = { request: { multipartParts: parts } };
      assert.equal((await lab.ask('POST', `${path}/upload`, {}, upload)).status, 401);
      assert.equal(await lab.exit('POST', `${path}/upload`, {}, upload), 'OK');
      const file = `${path}/content/iso/fault-upload-401-fault-unseed-595.iso`;
      assert.equal((await lab.ask('DELETE', file)).status, 595);
      assert.equal(await lab.exit('DELETE', file), 'OK');
      await lab.exit('POST', `${ONE}/9001/clone`, { newid: 102, name: 'fault-task-malformed' });
      const stop = await lab.ask('POST', `${ONE}/102/status/stop`);
      const status = `/nodes/pve1/tasks/${String(stop.data)}/status`;
      assert.equal(isJson((await lab.ask('GET', status)).body), false);
      assert.equal(isJson((await lab.ask('GET', status)).body), true);
    }));
});

describe('what an administrator can do through the admin port', () => {
  it('holds locks, slows storages, keeps old copies and clears records', () =>
    withLab(async (lab) => {
      const post = async (path: string, body: unknown): Promise<number> => {
        const options = { method: 'POST', body: JSON.stringify(body) };
        return (await fetch(`${lab.simulator.adminUrl}${path}`, options)).status;
      };
      const lock = { name: '/var/lock/qemu-server/lock-9001.conf', seconds: 60, node: 'pve1' };
      assert.equal(await post('/locks', lock), 200);
      const put = await lab.ask('PUT', `${ONE}/9001/config`, { onboot: 0 });
      assert.match(put.reason, /got timeout$/);
      assert.equal(await post('/storages/no-iso', { mounted: false }), 200);
      const status = await lab.ask('GET', '/nodes/pve1/storage/no-iso/status');
      assert.ok(status.body.includes('"active":0'), status.body);
      assert.equal(await post('/storages/nosuch', { mounted: false }), 400);
      assert.equal(await post('/worker-cache', { seconds: 2 }), 200);
      assert.equal(lab.simulator.core.daemons.cacheSeconds, 2);
      assert.equal(await post('/tasks/purge', {}), 200);
      assert.equal(await post('/nodes/pve2', { sshSeconds: 9 }), 200);
      assert.equal(lab.simulator.cluster.nodes.get('pve2')?.sshSeconds, 9);
    }));
});
