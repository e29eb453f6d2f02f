/** Clients that follow the config, and what is logged and counted about their requests. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { trace } from '@opentelemetry/api';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { pino } from 'pino';
import { loadProvidersConfig } from '../../api/providersConfig.ts';
import type { ProvidersConfig } from '../../api/providersConfig.ts';
import { createProxmoxClients, warnAboutSettings } from '../../activities/proxmox/clients.ts';
import type { RequestSeen } from '../../activities/proxmox/observed.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { eventually } from '../support/eventually.ts';
import { answerData } from '../support/httpsPeer.ts';
import {
  anAttempt,
  asWords,
  failureOf,
  tokenLine,
  upid,
  withRig,
} from '../support/proxmoxClient.ts';
import type { Rig } from '../support/proxmoxClient.ts';
import { recordingLog } from '../support/recordingLog.ts';

/** A config with these providers, all reached like the rig's unless told otherwise. */
function configOf(rig: Rig, providers: Record<string, Record<string, unknown>>): ProvidersConfig {
  const text = JSON.stringify({
    providers: Object.entries(providers).map(([name, changed]) => ({
      name,
      type: 'proxmox',
      proxmox: {
        url: rig.peer.url,
        tokenFile: rig.tokenFile,
        caFile: rig.ca.caFile,
        nodes: ['pve1'],
        isoStorage: 'proxy-seeds',
        templates: { 'debian-13': { vmid: 9001 } },
        machineTypes: { small: { cores: 1, memoryMiB: 1024 } },
        ...changed,
      },
    })),
  });
  return loadProvidersConfig(text, 'providers.yaml');
}

const quiet = pino({ level: 'silent' });

describe('clients of the configured providers', () => {
  it('each provider is reached with its own settings, and a request bound of requestTimeoutSeconds', () =>
    withRig({}, async (rig) => {
      const config = configOf(rig, { lab: {}, other: { requestTimeoutSeconds: 1 } });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      assert.deepEqual(clients.names(), ['lab', 'other']);
      assert.equal(clients.config('other').proxmox.requestTimeoutSeconds, 1);
      assert.equal(await clients.api('lab', anAttempt()).start('pve1', 110), upid);
      rig.peer.answer = () => undefined;
      const error = await failureOf(clients.api('other', anAttempt()).start('pve1', 110));
      assert.match(error.message, /provider other.*within 1 s/);
      await clients.close();
    }));

  it('an unknown provider is Transient and the configured ones are named', () =>
    withRig({}, async (rig) => {
      let config = configOf(rig, { lab: {}, other: {} });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      for (const call of [() => clients.config('la'), () => clients.api('la', anAttempt())]) {
        assert.throws(call, (error) => {
          assert.ok(error instanceof ProviderError);
          assert.equal(asWords(error), 'Transient ProviderUnknown provider');
          assert.match(error.message, /"la".*lab, other/);
          return true;
        });
      }
      config = configOf(rig, { la: {} });
      assert.equal(await clients.api('la', anAttempt()).start('pve1', 110), upid);
      await clients.close();
    }));

  it('a changed connection counts for the next call, while requests under way end', () =>
    withRig({}, async (rig) => {
      let config = configOf(rig, { lab: {} });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      const held: (() => void)[] = [];
      rig.peer.answer = (_request, response) => void held.push(() => answerData(response, upid));
      const slow = clients.api('lab', anAttempt()).start('pve1', 110);
      await eventually(() => held.length === 1);

      config = configOf(rig, { lab: { url: 'https://127.0.0.1:1' } });
      const error = await failureOf(clients.api('lab', anAttempt()).start('pve1', 110));
      assert.match(error.message, /127\.0\.0\.1:1 .*ECONNREFUSED/);
      held[0]?.();
      assert.equal(await slow, upid);
      await eventually(() => rig.peer.open() === 0);
      await clients.close();
    }));

  it('a changed catalogue keeps the connections', () =>
    withRig({}, async (rig) => {
      let config = configOf(rig, { lab: {} });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      await clients.api('lab', anAttempt()).start('pve1', 110);
      config = configOf(rig, { lab: { nodes: ['pve1', 'pve2'] } });
      await clients.api('lab', anAttempt()).start('pve1', 110);
      assert.equal(rig.peer.opened(), 1);
      await clients.close();
    }));

  it('the connections of a removed provider are closed', () =>
    withRig({}, async (rig) => {
      let config = configOf(rig, { lab: {}, other: {} });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      await clients.api('other', anAttempt()).start('pve1', 110);
      config = configOf(rig, { lab: {} });
      assert.throws(() => clients.api('other', anAttempt()));
      await eventually(() => rig.peer.open() === 0, 2_000);
      await clients.close();
    }));

  it('a check has one socket of its own, whatever the steps and the checks of other nodes wait for', () =>
    withRig({}, async (rig) => {
      const config = configOf(rig, { lab: { nodes: ['pve1', 'pve2'] } });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      const held: (() => void)[] = [];
      rig.peer.answer = ({ url }, response) => {
        const answer = (): void =>
          answerData(response, url.endsWith('/start') ? upid : { version: '9' });
        if (url.endsWith('/start') || url.includes('/nodes/pve2/')) held.push(answer);
        else answer();
      };
      const check = (node: string): ReturnType<typeof clients.laneApi> =>
        clients.laneApi('lab', `check/${node}`, anAttempt());
      const steps = Array.from({ length: 4 }, () =>
        clients.api('lab', anAttempt()).start('pve1', 1000),
      );
      const slow = check('pve2').getNodeStatus('pve2');
      await eventually(() => held.length === 5);
      await Promise.all([check('pve1').getVersion(), check('pve1').getVersion()]);
      assert.equal(rig.peer.opened(), 6);
      for (const answer of held) answer();
      await Promise.all([...steps, slow]);
      await clients.close();
    }));

  it('the socket of a node that left the config is closed', () =>
    withRig({}, async (rig) => {
      let config = configOf(rig, { lab: { nodes: ['pve1', 'pve2'] } });
      const clients = createProxmoxClients({ current: () => config, log: quiet });
      rig.peer.answer = (_request, response) => answerData(response, { version: '9' });
      await clients.laneApi('lab', 'check/pve2', anAttempt()).getVersion();
      config = configOf(rig, { lab: {} });
      await clients.laneApi('lab', 'watch', anAttempt()).getVersion();
      await eventually(() => rig.peer.open() === 1, 2_000);
      await clients.close();
    }));
});

describe('warnings at start', () => {
  it('name a token file that cannot be used and skipped TLS verification, and nothing else', () =>
    withRig({}, async (rig) => {
      const { log, lines } = recordingLog();
      const tokenFile = '/nowhere/token';
      const config = configOf(rig, { fine: {}, bad: { insecureSkipTLSVerify: true, tokenFile } });
      await warnAboutSettings(config, log);
      // 40: above every level that can be asked for, so they are always there.
      const found = { level: 40, provider: 'bad' };
      const [skipped, unreadable, ...others] = lines.map(({ time: _t, pid: _p, hostname: _h, ...line }) => line); // prettier-ignore
      assert.deepEqual(skipped, { ...found, msg: 'WARNING: insecureSkipTLSVerify is set' });
      const { reason, ...told } = unreadable ?? {};
      const msg = 'WARNING: token file is not readable; every call fails until it is';
      assert.deepEqual(told, { ...found, path: tokenFile, msg });
      assert.match(String(reason), /ENOENT/);
      assert.deepEqual(others, []);
      assert.equal(rig.peer.opened(), 0);
    }));
});

describe('observation', () => {
  it('one debug line a request names call, objects, task, duration and span', () =>
    withRig({}, async (rig) => {
      const { log, lines } = recordingLog();
      log.level = 'debug';
      const config = configOf(rig, { lab: {} });
      const clients = createProxmoxClients({ current: () => config, log });
      const sdk = new NodeSDK({ instrumentations: [], traceExporter: nowhere, metricReaders: [] });
      sdk.start();
      const api = clients.api('lab', anAttempt());
      const ids = await trace.getTracer('test').startActiveSpan('provider.create', async (span) => {
        await api.clone('pve1', 9001, { newid: 100123, name: 'proxy-a', description: 'd' });
        span.end();
        return span.spanContext();
      });
      await sdk.shutdown();
      await api.uploadIso('pve1', 'proxy-seeds', 'a-seed.iso', new Uint8Array(3));
      await api.deleteVolume('pve1', 'proxy-seeds', 'proxy-seeds:iso/a-seed.iso');
      rig.peer.answer = (_request, response) =>
        void response.writeHead(500, 'VM is locked (backup)').end();
      await failureOf(api.setVmConfig('pve1', 110, { cores: '2' }, { digest: 'x' }));

      const seen = lines.map(({ duration, time: _time, pid: _pid, hostname: _host, ...line }) => {
        assert.equal(typeof duration, 'number');
        return line;
      });
      const always = { level: 20, provider: 'lab', msg: 'proxmox api call', node: 'pve1' };
      assert.deepEqual(seen, [
        { ...always, call: 'clone', vmid: 9001, newid: 100123, name: 'proxy-a', upid, traceID: ids.traceId, spanID: ids.spanId }, // prettier-ignore
        { ...always, call: 'uploadIso', storage: 'proxy-seeds', filename: 'a-seed.iso', upid },
        { ...always, call: 'deleteVolume', storage: 'proxy-seeds', volid: 'proxy-seeds:iso/a-seed.iso', upid }, // prettier-ignore
        {
          ...always,
          call: 'setVmConfig',
          vmid: 110,
          httpStatus: 500,
          error: 'write cores of VM 110 on pve1 (provider lab): Proxmox answered 500 VM is locked (backup)', // prettier-ignore
        },
      ]);
      await clients.close();
    }));

  it('trace adds parameters and sizes, and no level shows token, upload body or cloud-init values', () =>
    withRig({}, async (rig) => {
      const { log, lines } = recordingLog();
      const config = configOf(rig, { lab: {} });
      const clients = createProxmoxClients({ current: () => config, log });
      const api = clients.api('lab', anAttempt());
      const canary = 'canary-in-cloud-init';
      await api.clone('pve1', 9001, {
        newid: 100123,
        name: 'a',
        description: 'mark',
        storage: 's',
        target: 'pve2',
      });
      await api.uploadIso('pve1', 'seeds', 'a.iso', Buffer.from(canary));
      await api.setVmConfig('pve1', 110, { cores: '2', sshkeys: canary }, { digest: 'x' });
      rig.peer.answer = (_request, response) =>
        answerData(response, { digest: 'd', cores: 2, cipassword: canary, sshkeys: canary });
      assert.equal((await api.getVmConfig('pve1', 110)).values.cores, '2');

      const [clone, upload, write, read] = lines;
      assert.deepEqual([clone?.description, clone?.storage, clone?.target], ['mark', 's', 'pve2']);
      assert.equal(upload?.bytes, canary.length);
      assert.deepEqual(write?.set, { cores: '2', sshkeys: '(not shown)' });
      assert.deepEqual(read?.config, {
        cores: '2',
        cipassword: '(not shown)',
        sshkeys: '(not shown)',
      });
      const everything = JSON.stringify(lines);
      assert.ok(!everything.includes(canary));
      assert.ok(!everything.includes(tokenLine.split('=')[1] ?? 'never'));
      await clients.close();
    }));

  it('every request is counted with its method and how it ended', () =>
    withRig({}, async (rig) => {
      const seen: RequestSeen[] = [];
      const config = configOf(rig, { lab: {} });
      const clients = createProxmoxClients({
        current: () => config,
        log: quiet,
        onRequest: (one) => seen.push(one),
      });
      const api = clients.api('lab', anAttempt());
      await api.start('pve1', 110);
      await api.tokenId();
      rig.peer.answer = (_request, response) => void response.writeHead(401, 'No ticket').end();
      await failureOf(api.listVms());
      await assert.rejects(
        clients.api('lab', anAttempt({ signal: AbortSignal.abort(new Error('over')) })).listVms(),
      );
      assert.deepEqual(
        seen.map(({ provider, method, outcome }) => [provider, method, outcome]),
        [
          ['lab', 'start', 'ok'],
          ['lab', 'listVms', 'Unauthorized'],
          ['lab', 'listVms', 'cancelled'],
        ],
      );
      assert.ok(seen.every(({ seconds }) => seconds >= 0 && seconds < 5));
      await clients.close();
    }));
});

/** Spans are made, and go nowhere. */
const nowhere = {
  export: (_spans: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
  shutdown: async () => undefined,
};
