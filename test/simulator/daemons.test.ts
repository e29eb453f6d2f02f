import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import tls from 'node:tls';
import { certificatesInMemory, type Certificates } from './certificates.ts';
import { parseAnswer, SECRET, type Answer } from './conformance/wire.ts';
import { eventually } from '../support/eventually.ts';
import { startSimulator, type Simulator } from './simulator.ts';
import { withLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const FIXTURE = new URL('fixtures/local.yaml', import.meta.url).pathname;

describe('workers of pvedaemon', () => {
  it('are three, so that a fourth agent call waits for the first three to end in silence', () =>
    withLab(async (lab) => {
      for (const newid of [101, 102, 103, 104]) {
        await lab.exit('POST', `${ONE}/9001/clone`, { newid });
        await lab.exit('POST', `${ONE}/${newid}/status/start`);
      }
      const started = lab.clock.now();
      const answers = await lab.askAll(
        [101, 102, 103, 104].map((vmid) => ['GET', `${ONE}/${vmid}/agent/info`] as const),
      );
      for (const { reason } of answers) assert.equal(reason, 'QEMU guest agent is not running');
      const seconds = (lab.clock.now() - started) / 1000;
      assert.ok(seconds >= 6 && seconds < 7, `${seconds} s`);
    }));

  it('keep everything else of pvedaemon waiting, while reads in pveproxy answer at once', () =>
    withLab(async (lab) => {
      lab.simulator.holdLock('/var/lock/qemu-server/lock-9001.conf', 60, 'pve1');
      const put = ['PUT', `${ONE}/9001/config`, { onboot: 0 }] as const;
      await lab.askAll([
        put,
        put,
        put,
        ['GET', `${ONE}/9002/status/current`],
        ['GET', `${ONE}/9002/config`],
        ['GET', '/cluster/resources'],
      ]);
      const took = (path: string): number => {
        const seen = lab.simulator.requests.findLast((request) => request.path === path);
        return (seen?.durationMs ?? 0) / 1000;
      };
      assert.ok(took(`${ONE}/9002/status/current`) >= 10);
      assert.deepEqual([took(`${ONE}/9002/config`), took('/cluster/resources')], [0, 0]);
    }));

  it('drop what they took but could not read for five seconds: 596 Broken pipe, and nothing done', () =>
    withLab(async (lab) => {
      lab.simulator.holdLock('/var/lock/qemu-server/lock-9001.conf', 60, 'pve1');
      const put = ['PUT', `${ONE}/9001/config`, { onboot: 0 }] as const;
      const other = ['PUT', `${ONE}/9002/config`, { tags: 'written' }] as const;
      const answers = await lab.askAll([put, put, put, other]);
      assert.equal(`${answers[3]?.status} ${answers[3]?.reason}`, '596 Broken pipe');
      assert.deepEqual([answers[3]?.body, (await lab.config(9002))['tags']], ['', undefined]);
    }));

  it('that take over thirty seconds lose their answer, not their work: 596 Connection timed out', () =>
    withLab(async (lab) => {
      lab.simulator.setStorage('no-iso', { slowSeconds: 45 });
      const listed = await lab.ask('GET', '/nodes/pve1/storage');
      assert.equal(`${listed.status} ${listed.reason}`, '596 Connection timed out');
      assert.ok(listed.seconds >= 30 && listed.seconds < 31, `${listed.seconds} s`);
      assert.equal(lab.simulator.core.daemons.busy('pve1'), 1);
      const narrow = await lab.ask('GET', '/nodes/pve1/storage', { content: 'iso' });
      assert.equal(narrow.status, 200);
    }));

  it('that die in the middle of a request answer 596 Broken pipe; the next call is refused', () =>
    withLab(async (lab) => {
      lab.simulator.holdLock('/var/lock/qemu-server/lock-9001.conf', 60, 'pve1');
      void lab.clock.sleep(2).then(() => {
        lab.simulator.setNode('pve1', { pvedaemon: false });
      });
      const cut = await lab.ask('PUT', `${ONE}/9001/config`, { onboot: 0 });
      assert.equal(`${cut.status} ${cut.reason}`, '596 Broken pipe');
      const refused = await lab.ask('PUT', `${ONE}/9001/config`, { onboot: 0 });
      assert.equal(`${refused.status} ${refused.reason}`, '595 Connection refused');
      assert.equal((await lab.ask('GET', `${ONE}/9001/config`)).status, 200);
    }));
});

describe('a worker of pveproxy', () => {
  it('passes on four requests at once, the rest queue silently', () =>
    withLab(async (lab) => {
      const { daemons } = lab.simulator.core;
      const worker = daemons.connect('pve1');
      let reached = 0;
      const all = Array.from({ length: 6 }, () =>
        daemons.toPeer(worker, 'pve2', async () => {
          reached += 1;
          await lab.clock.sleep(1);
        }),
      );
      await lab.advance(0.5);
      assert.equal(reached, 4);
      await lab.advance(3);
      await Promise.all(all);
      assert.equal(reached, 6);
    }));

  it('that waits for a dead node answers for its own node meanwhile', () =>
    withLab(async (lab) => {
      lab.simulator.setNode('pve2', { state: 'dead' });
      const dead = ['GET', '/nodes/pve2/status'] as const;
      const answers = await lab.askAll([
        ...Array.from({ length: 18 }, () => dead),
        ['GET', `${ONE}/9001/config`],
      ]);
      assert.equal(answers.filter(({ status }) => status === 595).length, 18);
      const seen = lab.simulator.requests.findLast(({ path }) => path === `${ONE}/9001/config`);
      assert.equal(seen?.durationMs, 0);
    }));

  it('says close after its last request, and another one takes its place', () =>
    withLab(
      async (lab) => {
        const said: (string | undefined)[] = [];
        for (let count = 0; count < 9; count += 1) {
          said.push((await lab.ask('GET', '/version')).headers['Connection']);
        }
        // Three workers in turn, two requests each.
        assert.deepEqual(said.slice(0, 3), ['Keep-Alive', 'Keep-Alive', 'Keep-Alive']);
        assert.deepEqual(said.slice(3, 6), ['close', 'close', 'close']);
        assert.deepEqual(said.slice(6), ['Keep-Alive', 'Keep-Alive', 'Keep-Alive']);
      },
      { lab: { requestsPerWorker: 2 } },
    ));
});

describe('a connection to pveproxy', () => {
  let certificates: Certificates;
  let simulator: Simulator;
  before(async () => {
    certificates = await certificatesInMemory();
    const options = { fixture: FIXTURE, tls: certificates, timeScale: 0.01, idleMs: 1000 };
    simulator = await startSimulator(options);
  });
  after(async () => {
    await simulator.close();
  });

  interface Client {
    ask(path: string): Promise<Answer>;
    closed: () => boolean;
    end(): void;
  }

  async function connect(): Promise<Client> {
    const { ca } = certificates;
    const socket = tls.connect({
      host: '127.0.0.1',
      port: simulator.port,
      ca,
      servername: 'localhost',
    });
    let received: Buffer = Buffer.alloc(0);
    let closed = false;
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed = true;
    });
    await new Promise<void>((resolve) => {
      socket.once('secureConnect', resolve);
    });
    const token = `PVEAPIToken=proxy-operator@pve!operator=${SECRET}`;
    return {
      closed: () => closed,
      end: () => socket.destroy(),
      ask: async (path) => {
        received = Buffer.alloc(0);
        socket.write(
          `GET /api2/json${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\n\r\n`,
        );
        await eventually(() => parseAnswer(received, closed) !== null, 5000, 1);
        const answer = parseAnswer(received, closed);
        assert.ok(answer !== null);
        return answer;
      },
    };
  }

  it('serves a hundred requests, and closes with the hundredth', async () => {
    const client = await connect();
    for (let count = 1; count <= 100; count += 1) {
      const { headers } = await client.ask('/version');
      assert.equal(headers['Connection'], count < 100 ? 'Keep-Alive' : 'close', `request ${count}`);
    }
    await eventually(client.closed);
  });

  it('is closed when it idles, and after every error', async () => {
    const idle = await connect();
    await idle.ask('/version');
    assert.equal(idle.closed(), false);
    await eventually(idle.closed);
    const failed = await connect();
    assert.equal((await failed.ask('/nosuch')).headers['Connection'], 'close');
    await eventually(failed.closed);
  });
});
