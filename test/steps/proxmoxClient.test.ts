/** Requests of the Proxmox client as they arrive at a TLS server, and what it makes of odd answers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { upidNode } from '../../activities/proxmox/client.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { answerData } from '../support/httpsPeer.ts';
import { asWords, failureOf, tokenLine, upid, withRig } from '../support/proxmoxClient.ts';

const digest = 'a'.repeat(40);

describe('requests', () => {
  it('parameters go in a form on POST and PUT, in the query on GET and DELETE, never in a body there', () =>
    withRig({}, async ({ api, peer }) => {
      await api().clone('pve1', 9001, {
        newid: 100123,
        name: 'proxy-a',
        description: 'proxy-operator-managed=true\nnote; x=1 & ü',
        target: 'pve2',
      });
      await api().setVmConfig(
        'pve1',
        110,
        { boot: 'order=scsi0;ide2', net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0' },
        { delete: ['protection', 'onboot'], digest },
      );
      await api().resize('pve1', 110, 'scsi0', '20G', digest);
      await api().stop('pve1', 110);
      await api().destroy('pve1', 110, { destroyUnreferencedDisks: false });
      await api().deleteVolume('pve1', 'proxy-seeds', 'proxy-seeds:iso/a-seed.iso');
      await api().abortTask(upid);
      peer.answer = (_request, response) => answerData(response, []);
      await api().listTasks('pve1', { type: 'qmclone', vmid: 9001, since: 5, limit: 9 });
      await api().listTasks('pve1', { activeOnly: true });

      const task = encodeURIComponent(upid);
      assert.deepEqual(
        peer.requests.map(({ method, url, body }) => [
          `${method} ${url.replace('/api2/json', '')}`,
          Object.fromEntries(new URLSearchParams(body.toString())),
        ]),
        [
          [
            'POST /nodes/pve1/qemu/9001/clone',
            {
              newid: '100123',
              name: 'proxy-a',
              description: 'proxy-operator-managed=true\nnote; x=1 & ü',
              full: '1',
              target: 'pve2',
            },
          ],
          [
            'PUT /nodes/pve1/qemu/110/config',
            {
              boot: 'order=scsi0;ide2',
              net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0',
              delete: 'protection,onboot',
              digest,
            },
          ],
          ['PUT /nodes/pve1/qemu/110/resize', { disk: 'scsi0', size: '20G', digest }],
          ['POST /nodes/pve1/qemu/110/status/stop', {}],
          ['DELETE /nodes/pve1/qemu/110?purge=1&destroy-unreferenced-disks=0', {}],
          ['DELETE /nodes/pve1/storage/proxy-seeds/content/proxy-seeds%3Aiso%2Fa-seed.iso', {}],
          [`DELETE /nodes/pve1/tasks/${task}`, {}],
          ['GET /nodes/pve1/tasks?source=all&typefilter=qmclone&vmid=9001&since=5&limit=9', {}],
          ['GET /nodes/pve1/tasks?source=active', {}],
        ],
      );
      for (const { method, headers, body } of peer.requests) {
        assert.equal(headers.authorization, `PVEAPIToken=${tokenLine}`);
        assert.equal(headers['transfer-encoding'], undefined);
        assert.equal(headers.expect, undefined);
        if (method === 'POST' || method === 'PUT') {
          assert.equal(headers['content-length'], String(body.length));
        } else {
          assert.equal(body.length, 0);
          assert.equal(headers['content-type'], undefined);
        }
        // pveproxy's parser takes `;` as a separator (api-facts 1.5).
        assert.ok(!body.includes(';'));
      }
    }));

  it('an upload is one buffered multipart body: content first, file last, disposition first in each part', () =>
    withRig({}, async ({ api, peer }) => {
      const image = Buffer.alloc(700_000, 0xe5);
      assert.equal(await api().uploadIso('pve1', 'proxy-seeds', 'proxy-a-seed.iso', image), upid);
      const [request] = peer.requests;
      assert.ok(request);
      assert.equal(request.url, '/api2/json/nodes/pve1/storage/proxy-seeds/upload');
      assert.equal(request.headers['transfer-encoding'], undefined);
      assert.equal(request.headers['content-length'], String(request.body.length));
      const boundary = /^multipart\/form-data; boundary=([\w-]+)$/.exec(
        request.headers['content-type'] ?? '',
      )?.[1];
      assert.ok(boundary);
      const expected = [
        `--${boundary}\r\nContent-Disposition: form-data; name="content"\r\n\r\niso\r\n`,
        `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="proxy-a-seed.iso"\r\n`,
        'Content-Type: application/octet-stream\r\n\r\n',
        image,
        `\r\n--${boundary}--\r\n`,
      ];
      assert.ok(Buffer.concat(expected.map((part) => Buffer.from(part))).equals(request.body));
    }));

  it('nothing is sent for an empty path piece, an impossible VMID or a text that is no UPID', () =>
    withRig({}, async ({ api, peer }) => {
      const calls = [
        () => api().listIsos('pve1', ''),
        () => api().listIsos('..', 'seeds'),
        () => api().start('pve1', -1),
        () => api().destroy('pve1', 99, { destroyUnreferencedDisks: true }),
        () => api().getTask('UPID:pve1:nonsense'),
        () => api().uploadIso('pve1', 'seeds', 'a"b.iso', new Uint8Array(1)),
      ];
      for (const call of calls) await assert.rejects(call());
      assert.equal(peer.requests.length, 0);
    }));

  it('a task is asked about under the node in its UPID', () => {
    assert.equal(upidNode(upid), 'pve1');
    const upload = 'UPID:pv1-2:00000503:0001E9920:6B0C2814:imgcopy::proxy-operator@pve!operator:';
    assert.equal(upidNode(upload), 'pv1-2');
    for (const text of ['', 'UPID:pve1:', upid.slice(0, -1), ` ${upid}`]) {
      assert.throws(() => upidNode(text), ProviderError);
    }
  });
});

describe('answers', () => {
  it('the reason phrase is read as UTF-8 and the message before it', () =>
    withRig(
      {
        answer: (_request, { socket }) => {
          socket?.end('HTTP/1.1 500 größer ✓\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
        },
      },
      async ({ api }) => {
        const error = await failureOf(api().start('pve1', 110));
        assert.match(error.message, /Proxmox answered 500 größer ✓/);
      },
    ));

  it("an answer that is not the API's is Transient, and what a write did is unknown", () =>
    withRig({}, async ({ api, peer }) => {
      const bodies = ['<html>', '{"data":', '[]', '{"data":{"no":"upid"}}', '{"data":null}', ''];
      for (const body of bodies) {
        peer.answer = (_request, response) => void response.end(body);
        const write = await failureOf(api().start('pve1', 110));
        assert.equal(asWords(write), 'Transient ApiError provider', body);
        assert.equal(write.facts.outcomeUnknown, true, body);
        const read = await failureOf(api().listVms());
        assert.equal(asWords(read), 'Transient ApiError provider', body);
        assert.equal(read.facts.outcomeUnknown, undefined);
      }
    }));

  it('an answer beyond the size limit is given up', () =>
    withRig({ limits: { maxAnswerBytes: 1_000 } }, async ({ api, peer }) => {
      peer.answer = (_request, response) => answerData(response, 'x'.repeat(2_000));
      const error = await failureOf(api().listVms());
      assert.match(error.message, /larger than 1000 bytes/);
      peer.answer = (_request, response) => answerData(response, []);
      assert.deepEqual(await api().listVms(), []);
    }));

  it('a token that comes back in an error is cut out of it', () =>
    withRig({}, async ({ api, peer }) => {
      const secret = tokenLine.split('=')[1] ?? '';
      peer.answer = (_request, response) => {
        response.writeHead(400, `bad header ${tokenLine}`);
        response.end(JSON.stringify({ data: null, message: tokenLine, errors: { a: tokenLine } }));
      };
      const error = await failureOf(api().start('pve1', 110));
      assert.match(error.message, /<secret>/);
      assert.ok(!error.message.includes(secret));
      assert.ok(!JSON.stringify(error.facts).includes(secret));
    }));

  it('agent answers without anything usable are null', () =>
    withRig({}, async ({ api, peer }) => {
      for (const data of [null, { result: { error: { class: 'x', desc: 'y' } } }, {}]) {
        peer.answer = (_request, response) => answerData(response, data);
        assert.equal(await api().getAgentInterfaces('pve1', 110), null);
      }
      peer.answer = (_request, response) =>
        answerData(response, {
          result: [
            { name: 'ens19', 'hardware-address': '00:00:5e:00:53:02' },
            { name: 'tun0', 'ip-addresses': null },
            { 'no-name': true },
            {
              name: 'ens18',
              'hardware-address': '00:00:5e:00:53:01',
              'ip-addresses': [
                { 'ip-address-type': 'ipv4', 'ip-address': '192.0.2.17', prefix: '24' },
                { 'ip-address-type': 'ax25', 'ip-address': 'N0CALL', prefix: 0 },
              ],
            },
          ],
        });
      assert.deepEqual(await api().getAgentInterfaces('pve1', 110), [
        { name: 'ens19', mac: '00:00:5e:00:53:02', addresses: [] },
        { name: 'tun0', mac: null, addresses: [] },
        {
          name: 'ens18',
          mac: '00:00:5e:00:53:01',
          addresses: [{ family: 'ipv4', address: '192.0.2.17', prefix: 24 }],
        },
      ]);
    }));
});
