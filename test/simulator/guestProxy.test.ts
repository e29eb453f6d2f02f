import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { certificatesInMemory } from './certificates.ts';
import { buildTestSeed } from './buildTestSeed.ts';
import { eventually } from '../support/eventually.ts';
import { startSimulator, type Simulator } from './simulator.ts';
import { powerOn } from './power.ts';

const FIXTURE = new URL('fixtures/local.yaml', import.meta.url).pathname;
const MAC = 'BC:24:11:00:00:01';

describe('a booted guest', () => {
  let simulator: Simulator;
  let page: http.Server;
  let pagePort = 0;

  before(async () => {
    const tls = await certificatesInMemory();
    simulator = await startSimulator({
      fixture: FIXTURE,
      tls,
      timeScale: 0.01,
      proxyNetwork: true,
    });
    page = http.createServer((request, response) => {
      response.end(`page ${request.url ?? ''}`);
    });
    await new Promise<void>((resolve) => {
      page.listen(0, '127.0.0.1', resolve);
    });
    const address = page.address();
    pagePort = typeof address === 'object' && address !== null ? address.port : 0;
  });
  after(async () => {
    await simulator.close();
    await new Promise((resolve) => {
      page.close(resolve);
    });
  });

  /** Boots a VM whose CD-ROM holds `image`; resolves when its agent is up. */
  async function boot(vmid: number, image: Buffer | null): Promise<string> {
    if (image !== null) {
      simulator.cluster.storages.add({
        storage: 'proxy-seeds',
        name: `iso/seed-${vmid}.iso`,
        node: 'pv1-1',
        content: 'iso',
        format: 'iso',
        size: image.length,
        used: image.length,
        ctime: 0,
        vmid: null,
        base: null,
        bytes: image,
      });
    }
    simulator.addGuest({
      vmid,
      type: 'qemu',
      node: 'pv1-1',
      config: {
        name: `guest-${vmid}`,
        agent: '1',
        net0: `virtio=${MAC.replace(/01$/, String(vmid % 100))},bridge=vmbr0`,
        ...(image === null ? {} : { ide2: `proxy-seeds:iso/seed-${vmid}.iso,media=cdrom` }),
      },
    });
    const vm = simulator.cluster.vms.get(vmid);
    assert.ok(vm !== undefined);
    powerOn(simulator.core, vm);
    await eventually(() => vm.running?.agentUp === true);
    return vm.running?.address ?? '';
  }

  async function throughProxy(
    address: string,
    port: number,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const request = http.request(
        { host: address, port, path: `http://127.0.0.1:${pagePort}/hello`, headers },
        (response) => {
          let body = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            body += chunk;
          });
          response.on('end', () => {
            resolve({ status: response.statusCode ?? 0, body });
          });
        },
      );
      request.on('error', reject);
      request.end();
    });
  }

  it('is a forward proxy on the port that its user-data names, on an address of its own', async () => {
    const address = await boot(110, buildTestSeed('#cloud-config\n# simulator: port=3190\n'));
    assert.match(address, /^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./);
    assert.deepEqual(await throughProxy(address, 3190), { status: 200, body: 'page /hello' });
  });

  it('tunnels with CONNECT', async () => {
    const address = await boot(111, buildTestSeed('#cloud-config\n'));
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = net.connect(3128, address, () => {
        socket.write(`CONNECT 127.0.0.1:${pagePort} HTTP/1.1\r\nHost: x\r\n\r\n`);
      });
      let received = '';
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString();
        if (received.endsWith('established\r\n\r\n')) socket.write('GET /t HTTP/1.0\r\n\r\n');
      });
      socket.on('end', () => {
        resolve(received);
      });
      socket.on('error', reject);
    });
    assert.match(answer, /page \/t$/);
  });

  it('asks for the credentials that its user-data names', async () => {
    const address = await boot(112, buildTestSeed('#cloud-config\n# simulator: auth=ann:secret\n'));
    assert.equal((await throughProxy(address, 3128)).status, 407);
    const credentials = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
    const allowed = await throughProxy(address, 3128, { 'Proxy-Authorization': credentials });
    assert.equal(allowed.status, 200);
  });

  it('boots without a proxy when the CD-ROM is no seed', async () => {
    const address = await boot(113, Buffer.alloc(40_960));
    await assert.rejects(throughProxy(address, 3128), { code: 'ECONNREFUSED' });
  });

  it('boots without a proxy when it has no CD-ROM', async () => {
    const address = await boot(114, null);
    await assert.rejects(throughProxy(address, 3128), { code: 'ECONNREFUSED' });
  });

  it('stops listening when its power goes off, and gets the same address again', async () => {
    const address = await boot(115, buildTestSeed('#cloud-config\n'));
    simulator.powerOffVm(115);
    await eventually(async () => {
      await assert.rejects(throughProxy(address, 3128), { code: 'ECONNREFUSED' });
    });
    const vm = simulator.cluster.vms.get(115);
    assert.ok(vm !== undefined);
    powerOn(simulator.core, vm);
    await eventually(() => vm.running?.agentUp === true);
    assert.equal(vm.running?.address, address);
    assert.equal((await throughProxy(address, 3128)).status, 200);
  });

  it('answers 502 while it is broken, and what it should once it is mended', async () => {
    const address = await boot(116, buildTestSeed('#cloud-config\n'));
    simulator.changeGuest(116, { proxyBroken: true });
    assert.equal((await throughProxy(address, 3128)).status, 502);
    simulator.changeGuest(116, { proxyBroken: false });
    assert.equal((await throughProxy(address, 3128)).status, 200);
  });

  it('lives on at another address when it lost its lease, and keeps that one', async () => {
    const address = await boot(117, buildTestSeed('#cloud-config\n'));
    // What it booted from is not needed any more.
    simulator.moveVm(117, 'pv1-2');
    simulator.changeGuest(117, { newAddress: true });
    const vm = simulator.cluster.vms.get(117);
    const other = vm?.running?.address ?? '';
    assert.notEqual(other, address);
    await assert.rejects(throughProxy(address, 3128), { code: 'ECONNREFUSED' });
    await eventually(async () => (await throughProxy(other, 3128)).status === 200);
    simulator.powerOffVm(117);
    simulator.moveVm(117, 'pv1-1');
    assert.ok(vm !== undefined);
    powerOn(simulator.core, vm);
    await eventually(() => vm.running?.agentUp === true);
    assert.equal(vm.running?.address, other);
  });
});
