/** What deploy/ installs, judged by a real API server: every object is accepted, and the roles allow what they should. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { createKubernetesClient } from '../../activities/kubernetes/client.ts';
import { runCommand, type CommandResult } from '../../deploy/dev/command.ts';
import { findTool } from '../../deploy/dev/tools.ts';
import { newCa } from '../simulator/certificates.ts';
import { makeCa } from '../support/tls.ts';
import { startApiServer, type ApiServer } from './support/apiserver.ts';

const deploy = fileURLToPath(new URL('../../deploy', import.meta.url));
const secretProgram = join(deploy, 'secret/main.ts');
const namespace = 'egress-proxies-operator-system';
const canary = '5f0c9d7e-canary';

const secret = z.object({
  metadata: z.object({ annotations: z.record(z.string(), z.string()).optional() }),
  data: z.record(z.string(), z.string()),
});

const selfReview = z.object({
  status: z.object({
    userInfo: z.object({ username: z.string(), groups: z.array(z.string()) }),
  }),
});
type Account = 'controller' | 'worker';

describe('the deployment at a real API server', { timeout: 180_000 }, () => {
  let server: ApiServer;
  let kubectlPath: string;
  let folder: string;
  const kubectl = (...args: string[]): Promise<CommandResult> => server.kubectl.run(args);
  const mayI = async (user: Account, ...what: string[]): Promise<string> =>
    (await server.as(user).run(['auth', 'can-i', ...what])).stdout.trim();

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'egress-proxies-deploy-'));
    kubectlPath = (await findTool('kubectl')).path;
    server = await startApiServer();
    await succeed(kubectl('apply', '--server-side', '-f', join(deploy, 'crds')));
    await succeed(kubectl('apply', '--server-side', '-k', join(deploy, 'overlays/example')));
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const component of [
    'components/temporal-mtls',
    'components/temporal-api-key',
    'components/secrets-in-all-namespaces',
  ]) {
    test(`accepts the base with ${component}, no field of it unknown`, async () => {
      const overlay = mkdtempSync(join(folder, 'overlay-'));
      const from = (path: string): string => relative(overlay, join(deploy, path));
      const lines = [`resources: [${from('base')}]`, `components: [${from(component)}]`];
      writeFileSync(join(overlay, 'kustomization.yaml'), `${lines.join('\n')}\n`);
      // The example has put the same objects there with other fields of its own.
      const dryRun = ['--dry-run=server', '--validate=strict', '--force-conflicts'];
      await succeed(kubectl('apply', '--server-side', ...dryRun, '-k', overlay));
    });
  }

  test('controller and worker log in with client certificates, as the service accounts of the manifests', async () => {
    for (const user of ['controller', 'worker'] as const) {
      const whoami = await server.as(user).must(['auth', 'whoami', '-o', 'json']);
      const { userInfo } = selfReview.parse(JSON.parse(whoami)).status;
      assert.equal(userInfo.username, `system:serviceaccount:${namespace}:${user}`);
      assert.deepEqual(userInfo.groups.toSorted(), [
        'system:authenticated',
        'system:serviceaccounts',
        `system:serviceaccounts:${namespace}`,
      ]);
    }
  });

  test('neither a token nor a certificate of another CA logs anybody in', async () => {
    const { url, caFile, identities } = server.files;
    const ca = readFileSync(caFile, 'utf8');
    const other = await (await newCa('Another CA', 1)).issueClient('admin', ['system:masters']);
    const statusOf = async (connect: object, headers: Record<string, string>): Promise<number> => {
      const dispatcher = new Agent({ connect: { ca, ...connect } });
      const { statusCode, body } = await request(`${url}/api/v1/nodes`, { dispatcher, headers });
      await body.dump();
      await dispatcher.close();
      return statusCode;
    };
    assert.equal(await statusOf(identities.admin, {}), 200);
    assert.equal(await statusOf(other, {}), 401);
    assert.equal(await statusOf({}, { authorization: `Bearer ${randomUUID()}` }), 401);
    assert.equal(await statusOf({}, {}), 403, 'who does not log in may nothing');
  });

  test('in a pod, the token of its service account lets the worker in with the same rights', async (t) => {
    const pod = mkdtempSync(join(folder, 'pod-'));
    const mount = join(pod, 'var/run/secrets/kubernetes.io/serviceaccount');
    mkdirSync(mount, { recursive: true });
    const token = kubectl('create', 'token', 'worker', `--namespace=${namespace}`);
    writeFileSync(join(mount, 'token'), (await succeed(token)).trim());
    writeFileSync(join(mount, 'ca.crt'), readFileSync(server.files.caFile));
    const { hostname, port } = new URL(server.files.url);
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    Object.assign(process.env, env);
    t.after(() => Object.keys(env).forEach((name) => delete process.env[name]));
    const config = new KubeConfig();
    config.loadFromCluster(pod);
    const client = createKubernetesClient(config);
    t.after(() => client.close());
    const statusOf = async (path: string): Promise<number> =>
      (await client.send({ method: 'GET', path })).status;
    assert.equal(await statusOf('/api/v1/namespaces/kube-system'), 200);
    assert.equal(await statusOf('/api/v1/namespaces/default'), 403);
  });

  test('the worker may read Secrets only in a namespace that is bound for it', async () => {
    await succeed(kubectl('apply', '-f', join(deploy, 'samples/namespace.yaml')));
    for (const where of ['proxies', 'default']) {
      await succeed(kubectl('create', 'secret', 'generic', 'cloud-init', `--namespace=${where}`));
    }
    const read = (user: Account, where: string): Promise<CommandResult> =>
      server.as(user).run(['get', 'secret', 'cloud-init', `--namespace=${where}`]);
    await succeed(read('worker', 'proxies'));
    for (const [user, where] of [
      ['worker', 'default'],
      ['controller', 'proxies'],
    ] as const) {
      const { code, stderr } = await read(user, where);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`Forbidden.*:${user}" cannot get resource "secrets"`));
    }
    assert.equal(await mayI('worker', 'get', 'secrets', '--namespace=proxies'), 'yes');
    assert.equal(await mayI('worker', 'get', 'secrets', '--namespace=default'), 'no');
    assert.equal(await mayI('worker', 'list', 'secrets', '--namespace=proxies'), 'no');
    assert.equal(await mayI('controller', 'list', 'secrets', '--namespace=proxies'), 'no');
  });

  test('the controller may write nothing, the worker no spec', async () => {
    for (const verb of ['create', 'update', 'patch', 'delete']) {
      assert.equal(await mayI('controller', verb, 'proxies.egress-proxies.io'), 'no', verb);
    }
    for (const verb of ['create', 'update', 'delete']) {
      assert.equal(await mayI('worker', verb, 'proxies.egress-proxies.io'), 'no', verb);
    }
    const status = ['patch', 'proxies.egress-proxies.io', '--subresource=status'];
    assert.equal(await mayI('controller', ...status), 'no');
    assert.equal(await mayI('worker', ...status), 'yes');
  });

  const makeSecret = (files: { token?: string; ca?: string }): Promise<CommandResult> => {
    const path = (name: string, text: string | undefined): string => {
      const file = join(folder, name);
      rmSync(file, { force: true });
      if (text !== undefined) writeFileSync(file, text, { mode: 0o600 });
      return file;
    };
    return runCommand(process.execPath, [secretProgram], {
      env: {
        PATH: `${join(kubectlPath, '..')}:${process.env['PATH']}`,
        KUBECONFIG: server.files.kubeconfigs.admin,
        HOME: folder,
        PROXMOX_TOKEN_FILE: path('token', files.token),
        PROXMOX_CA_FILE: path('ca.pem', files.ca),
      },
    });
  };
  const readSecret = async (): Promise<z.output<typeof secret>> => {
    const command = kubectl('get', 'secret', 'proxmox-token', '-n', namespace, '-o', 'json');
    return secret.parse(JSON.parse(await succeed(command)));
  };

  test('make proxmox-token-secret makes the Secret, updates it, and keeps no second copy', async () => {
    const pem = await aCertificate();
    const token = (value: string): string => `proxy-operator@pve!operator=${value}\n`;
    await succeed(makeSecret({ token: token('first'), ca: pem }));
    await succeed(makeSecret({ token: token(canary), ca: pem }));
    const { data, metadata } = await readSecret();
    assert.equal(Buffer.from(data['token'] ?? '', 'base64').toString(), token(canary));
    assert.equal(Buffer.from(data['ca.pem'] ?? '', 'base64').toString(), pem);
    assert.deepEqual(metadata.annotations ?? {}, {});
  });

  test('make proxmox-token-secret takes the two files of ~/.config when no others are named', async () => {
    const home = mkdtempSync(join(folder, 'home-'));
    const env = {
      PATH: `${join(kubectlPath, '..')}:${process.env['PATH']}`,
      KUBECONFIG: server.files.kubeconfigs.admin,
      HOME: home,
    };
    const make = (): Promise<CommandResult> =>
      runCommand(process.execPath, [secretProgram], { env });
    const { stderr } = await make();
    const [tokenFile, caFile] = [join(home, '.config/proxmox-token'), join(home, '.config/proxmox-ca.pem')]; // prettier-ignore
    for (const file of [tokenFile, caFile])
      assert.ok(stderr.includes(`${file} is missing`), stderr);
    mkdirSync(join(home, '.config'));
    const token = 'proxy-operator@pve!operator=of-the-home\n';
    writeFileSync(tokenFile, token, { mode: 0o600 });
    writeFileSync(caFile, await aCertificate());
    await succeed(make());
    assert.equal(Buffer.from((await readSecret()).data['token'] ?? '', 'base64').toString(), token);
  });

  test('make proxmox-token-secret names every problem of both files, without their content', async () => {
    const cases: [string, { token?: string; ca?: string }, RegExp][] = [
      ['no files', {}, /token file .*token is missing[^]*CA file .*ca\.pem is missing/],
      ['two lines', { token: `a@pve!b=${canary}\na@pve!b=${canary}\n` }, /not exactly one line/],
      ['the header', { token: `PVEAPIToken=a@pve!b=${canary}` }, /not exactly one line/],
      ['no secret', { token: 'a@pve!b\n' }, /not exactly one line/],
      ['no certificate', { ca: canary }, /holds no valid PEM certificate/],
      ['a key', { ca: `-----BEGIN PRIVATE KEY-----\n${canary}\n` }, /holds a private key/],
    ];
    for (const [title, files, message] of cases) {
      const { code, stdout, stderr } = await makeSecret(files);
      assert.equal(code, 1, title);
      assert.match(stderr, message, title);
      assert.doesNotMatch(stdout + stderr, new RegExp(canary), title);
    }
  });

  test('make proxmox-token-secret refuses a token file that others can read', async () => {
    const pem = await aCertificate();
    await succeed(makeSecret({ token: 'a@pve!b=c\n', ca: pem }));
    chmodSync(join(folder, 'token'), 0o644);
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      PROXMOX_TOKEN_FILE: join(folder, 'token'),
      PROXMOX_CA_FILE: join(folder, 'ca.pem'),
    };
    const { code, stderr } = await runCommand(process.execPath, [secretProgram], { env });
    assert.equal(code, 1);
    assert.match(stderr, /can be read by others; chmod 0600/);
  });
});

async function aCertificate(): Promise<string> {
  const { caPem, dir } = await makeCa();
  rmSync(dir, { recursive: true });
  return caPem;
}

/** Standard output of a command that must succeed. */
async function succeed(command: Promise<CommandResult>): Promise<string> {
  const { code, stdout, stderr } = await command;
  assert.equal(code, 0, stderr);
  return stdout;
}
