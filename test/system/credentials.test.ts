/** A cluster that cannot be reached, or not with what the operator was given: said where the user looks, mended without a restart. */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { after } from 'node:test';
import type { Proxy } from '../../api/proxy.ts';
import { claimPort } from '../../deploy/dev/ports.ts';
import { Cable } from './support/cable.ts';
import { simulatedRequests } from './support/cluster.ts';
import {
  conditionOf,
  eventsOf,
  expectNothingLeft,
  managedSpec,
  proxyManifest,
  untilProxy,
  untilReady,
} from './support/proxies.ts';
import { filesOf, malformedToken, secondToken, withProviders } from './support/providers.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const far = await claimPort();
const cable = new Cable(far.port);
const setting = {
  stack: { temporalDb: 'memory', providersConfig: await withProviders(far.port) },
  concurrency: 6,
} as const;

after(() => {
  cable.unplug();
  far.release();
});

onOneStack('a cluster that cannot be reached as configured', setting, (story) => {
  story(
    'a missing token file: warned of once, no request, and used when it comes',
    async (stack) => {
      const provider = 'no-token';
      const tokenFile = filesOf(stack).tokenFile(provider);
      const warnings = stack
        .log('worker')
        .split('\n')
        .filter((line) => line.includes('WARNING: token file') && line.includes(provider));
      assert.equal(warnings.length, 1, warnings.join('\n'));
      assert.ok(warnings[0]?.includes(tokenFile));

      const waiting = await untilTrouble(stack, provider, 'CredentialsUnavailable');
      assert.notEqual(waiting.status.phase, 'Failed', 'the file may still come');
      assert.ok(waiting.status.message.includes(tokenFile), waiting.status.message);
      assert.deepEqual(await requestsWith(stack, secondToken.id), []);

      writeFileSync(tokenFile, `${secondToken.line}\n`);
      await untilReady(stack, provider);
      assert.notDeepEqual(await requestsWith(stack, secondToken.id), []);
      await remove(stack, waiting);
    },
  );

  story(
    'a token file that holds no token: Failed without repeating it, then mended',
    async (stack) => {
      const provider = 'malformed-token';
      const tokenFile = filesOf(stack).tokenFile(provider);
      const failed = await untilTrouble(stack, provider, 'TokenMalformed');
      assert.equal(failed.status.phase, 'Failed');
      assert.equal(conditionOf(failed, 'Stalled').status, 'True');
      const { message } = failed.status;
      assert.ok(message.includes(tokenFile), message);
      assert.match(message, /<user>@<realm>!<tokenid>=<secret>/);
      assert.ok(!JSON.stringify(failed.status).includes(malformedToken.slice(-10)));

      writeFileSync(tokenFile, `${secondToken.line}\n`);
      await untilReady(stack, provider);
      await remove(stack, failed);
    },
  );

  story('a certificate of another CA: host and remedy are named, then mended', async (stack) => {
    const provider = 'wrong-ca';
    const failed = await untilTrouble(stack, provider, 'CertificateInvalid');
    assert.equal(failed.status.phase, 'Failed');
    const { message } = failed.status;
    assert.ok(message.includes(`127.0.0.1:${stack.ports.simulator}`), message);
    const remedy =
      "caFile must hold the CA that signed it, usually the cluster's /etc/pve/pve-root-ca.pem";
    assert.equal(message.split(remedy).length, 2, `the remedy once: ${message}`);
    assert.ok(!message.includes('--use-system-ca'), message);

    copyFileSync(filesOf(stack).caFile('rotating'), filesOf(stack).caFile(provider));
    await untilReady(stack, provider);
    await remove(stack, failed);
  });

  story('a rotated token counts at once, a wrong one is said and not hammered', async (stack) => {
    const provider = 'rotating';
    const tokenFile = filesOf(stack).tokenFile(provider);
    const worker = stack.processes.worker.pid();
    await stack.apply(proxyManifest(provider, specFor(provider)));
    const proxy = await untilReady(stack, provider);

    const revoked = readFileSync(tokenFile, 'utf8').replace(/\d{4}\n$/, '9999\n');
    writeFileSync(tokenFile, revoked);
    const refusedBefore = (await requestsWith(stack, null)).length;
    await stack.kubectl('delete', 'px', provider, '--wait=false');
    const blocked = await untilProxy(stack, provider, 'be refused', (object) => {
      return conditionOf(object, 'Reconciling').reason === 'Unauthorized';
    });
    assert.equal(blocked.status.phase, 'Deleting');
    assert.match(blocked.status.message, /pveum user token list proxy-operator@pve/);
    assert.ok(!JSON.stringify(blocked.status).includes('9999'));

    writeFileSync(tokenFile, `${secondToken.line}\n`);
    await expectNothingLeft(stack, proxy);
    const refused = (await requestsWith(stack, null)).length - refusedBefore;
    assert.ok(refused <= 4, `${refused} requests with a token that was refused`);
    assert.equal(stack.processes.worker.pid(), worker, 'nothing was restarted');
  });

  story('a cluster that is down: said at the first failure, and waited for', async (stack) => {
    const provider = 'far-away';
    const waiting = await untilTrouble(stack, provider, 'Unreachable');
    assert.notEqual(waiting.status.phase, 'Failed');
    assert.ok(waiting.status.message.includes(`127.0.0.1:${far.port}`), waiting.status.message);
    assert.match(waiting.status.message, /check that the host is up and pveproxy runs there/);
    assert.match(conditionOf(waiting, 'Reconciling').message, /attempt 1, since \d{4}-/);
    const [event] = (await eventsOf(stack, waiting)).filter(({ type }) => type === 'Warning');
    assert.equal(event?.reason, 'Unreachable');

    await cable.plugIn(stack.ports.simulator);
    const proxy = await untilReady(stack, provider);
    await remove(stack, proxy);
  });
});

function specFor(provider: string): object {
  return managedSpec({ provider });
}

/** Applies a Proxy named as its provider and waits until it says what is wrong. */
async function untilTrouble(stack: SystemStack, provider: string, reason: string): Promise<Proxy> {
  await stack.apply(proxyManifest(provider, specFor(provider)));
  return await untilProxy(stack, provider, `say ${reason}`, (proxy) => {
    assert.equal(conditionOf(proxy, 'Ready').reason, reason);
    assert.equal(conditionOf(proxy, 'Provisioned').reason, reason);
  });
}

/** Paths of the requests made with that token; `null`: of those whose token was refused. */
async function requestsWith({ simulator }: SystemStack, token: string | null): Promise<string[]> {
  const requests = await simulatedRequests(simulator);
  return requests
    .filter((request) => request.token === token && (token !== null || request.status === 401))
    .map(({ method, path }) => `${method} ${path}`);
}

async function remove(stack: SystemStack, proxy: Proxy): Promise<void> {
  await stack.kubectl('delete', 'px', proxy.metadata.name, '--timeout=90s');
  await expectNothingLeft(stack, proxy);
}
