/** Tokens, CAs, cloud-init and passwords are in no history, log, span, metric, Event or status, whatever succeeds or fails. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after } from 'node:test';
import { claimPort } from '../../deploy/dev/ports.ts';
import {
  pemLines,
  databaseTexts,
  findSecrets,
  kubernetesTexts,
  logTexts,
  metricsTexts,
  simulatorToken,
  temporalTexts,
  type Written,
} from './support/canaries.ts';
import { pushFault } from './support/cluster.ts';
import { startCollector } from './support/collector.ts';
import { edited } from './support/config.ts';
import {
  conditionOf,
  managedSpec,
  proxyManifest,
  secretManifest,
  until,
  untilProxy,
  untilReady,
} from './support/proxies.ts';
import { filesOf, malformedToken, secondToken, withProviders } from './support/providers.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const far = await claimPort();
const collector = await startCollector();
// Handed on to controller and worker.
process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.url;
after(() => {
  collector.close();
  far.release();
});

const planted = {
  cloudInit: 'canary-of-inline-cloud-init',
  vendorData: 'canary-of-vendor-data',
  secretCloudInit: 'canary-of-cloud-init-in-a-secret',
  otherKey: 'canary-of-another-key-of-the-secret',
  wrongPassword: 'canary-of-a-wrong-password',
  username: 'canary-of-a-user-name',
  password: 'canary-of-a-password',
  revokedToken: 'cafe0000-0000-4000-8000-00000ca9a4ee',
  pastedToken: 'canary-of-a-token-in-the-config',
  brokenCa: 'Y2FuYXJ5LW9mLWEtYnJva2VuLUNBLWZpbGUtd2l0aC1hLW1hcms',
};
const withCanaries = await withProviders(far.port);
const setting = {
  stack: {
    temporalDb: 'file',
    workerFlags: ['--log-level=trace'],
    controllerFlags: ['--log-level=trace'],
    providersConfig: (text: string): string => {
      const vendorData = `#cloud-config\n# ${planted.vendorData}\n`;
      return edited(({ providers }) => {
        for (const { proxmox } of providers) Object.assign(proxmox, { vendorData });
      })(withCanaries(text));
    },
  },
} as const;

onOneStack('secrets of a run', setting, (story) => {
  story('are nowhere but where they belong', async (stack) => {
    const secrets = { ...planted, ...secretsOf(stack) };
    await plant(stack);
    const written = await everythingWritten(stack);
    expectRead(written);
    assert.deepEqual(findSecrets(secrets, written), []);
  });

  story('would be found if they were there', () => {
    const { cloudInit, password } = planted;
    const encoded = Buffer.from(`user:${password}`).toString('base64');
    const written = [
      { place: 'a log', text: `user-data is ${cloudInit}` },
      { place: 'a header', text: `Basic ${encoded}` },
    ];
    const found = findSecrets({ cloudInit, password }, written);
    assert.deepEqual(found, ['cloudInit in a log', 'password in a header']);
    return Promise.resolve();
  });
});

/** The search found something to search in: each place tells of the Proxy, each metrics page has metrics. */
function expectRead(written: readonly Written[]): void {
  const ofTemporal = ['history', 'description', 'details', 'query'].map(
    (kind) => `${kind} of proxy-`,
  );
  const others = [
    'temporal.db',
    'events',
    'statuses',
    'discovery',
    'spans',
    'worker.log',
    'controller.log',
  ];
  for (const place of [...ofTemporal, ...others]) {
    const found = written.filter((one) => one.place.startsWith(place));
    assert.ok(
      found.some(({ text }) => text.includes('canary-secret')),
      `nothing of it in ${place}`,
    );
  }
  const pages = written.filter(({ place }) => place.endsWith('Metrics'));
  assert.equal(pages.length, 4);
  for (const { place, text } of pages) assert.match(text, /^# TYPE /m, place);
}

/** Secrets of the stack itself. */
function secretsOf(stack: SystemStack): Record<string, string> {
  const files = filesOf(stack);
  const lines = (['rotating', 'wrong-ca'] as const).flatMap((provider) =>
    pemLines(readFileSync(files.caFile(provider), 'utf8')),
  );
  const { controller, worker } = stack.kubernetes.identities;
  const keyLines = [controller, worker].flatMap(({ key }) => pemLines(key));
  assert.equal(keyLines.length, 4);
  return {
    token: simulatorToken,
    secondToken: secondToken.line.slice(-36),
    malformedToken: malformedToken.slice(-36),
    ...Object.fromEntries(keyLines.map((line, index) => [`line ${index} of client keys`, line])),
    ...Object.fromEntries(lines.map((line, index) => [`line ${index} of the CAs`, line])),
  };
}

/** A run of successes and failures with a secret in each. */
async function plant(stack: SystemStack): Promise<void> {
  const files = filesOf(stack);
  writeFileSync(
    files.tokenFile('rotating'),
    `proxy-operator@pve!operator=${planted.revokedToken}\n`,
  );
  const apply = (name: string, changes: object): Promise<void> =>
    stack.apply(proxyManifest(name, managedSpec(changes)));
  const untilReason = async (name: string, reason: string): Promise<void> => {
    await untilProxy(stack, name, `say ${reason}`, (proxy) => {
      assert.equal(conditionOf(proxy, 'Ready').reason, reason);
    });
  };
  // An answer of Proxmox that repeats the token it was asked with.
  const reason = `no access with ${simulatorToken}`;
  await pushFault(stack.simulator, {
    method: 'POST',
    path: '/status/start$',
    action: { kind: 'status', status: 500, reason },
  });
  await apply('canary-inline', { cloudInit: `#cloud-config\n# ${planted.cloudInit}\n` });

  const { username, password } = planted;
  await stack.apply(
    secretManifest('canaries', {
      'user-data': `# ${planted.secretCloudInit}\n# simulator: auth=${username}:${password}\n`,
      other: planted.otherKey,
    }),
  );
  await stack.apply(secretManifest('credentials', { username, password: planted.wrongPassword }));
  const fromKey = (key: string): object => ({
    cloudInit: undefined,
    cloudInitFrom: { secretKeyRef: { name: 'canaries', key } },
    auth: { secretRef: { name: 'credentials' } },
    healthCheck: { intervalSeconds: 2, timeoutSeconds: 2 },
  });
  await apply('canary-secret', fromKey('user-data'));
  await apply('canary-no-key', fromKey('missing'));
  await apply('demo-start-fails', { cloudInit: `# ${planted.cloudInit}` });
  for (const provider of ['no-token', 'malformed-token', 'wrong-ca', 'rotating']) {
    await apply(provider, { provider, cloudInit: `# ${planted.cloudInit}` });
  }

  await untilReason('no-token', 'CredentialsUnavailable');
  await untilReason('malformed-token', 'TokenMalformed');
  await untilReason('wrong-ca', 'CertificateInvalid');
  await untilReason('rotating', 'Unauthorized');
  await untilReason('canary-no-key', 'CloudInitUnavailable');
  await untilReason('canary-secret', 'ProxyAuthenticationRequired');
  await stack.apply(secretManifest('credentials', { username, password }));
  for (const name of ['canary-inline', 'canary-secret', 'demo-start-fails']) {
    await untilReady(stack, name);
  }
  const pem = `-----BEGIN CERTIFICATE-----\n${planted.brokenCa}\n-----END CERTIFICATE-----\n`;
  writeFileSync(files.caFile('wrong-ca'), pem);
  await untilProxy(stack, 'wrong-ca', 'refuse the broken file', ({ status }) => {
    assert.match(status.message, /certificate \(number 1\) that is broken/);
  });
  writeFileSync(
    stack.providersConfigFile,
    `providers:\n  - name: x\n    tokenFile: a@pve!b=${planted.pastedToken}\n  bad: [\n`,
  );
  await until(stack, 'the bad config should be refused', () => {
    assert.match(stack.log('worker'), /providers config not accepted/);
  });
  await stack.kubectl('delete', 'px', 'canary-inline', '--timeout=60s');
}

/** What needs the programs first, then their end, which sends the last spans. */
async function everythingWritten(stack: SystemStack): Promise<Written[]> {
  const asked = [
    ...(await temporalTexts(stack)),
    ...(await kubernetesTexts(stack)),
    ...(await metricsTexts(stack)),
  ];
  await stack.shutDown('controller');
  await stack.shutDown('worker');
  return [...asked, ...databaseTexts(stack), ...logTexts(stack), collector.received()];
}
