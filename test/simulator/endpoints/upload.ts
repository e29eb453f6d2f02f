import { createHash, randomBytes } from 'node:crypto';
import { optionalText, startTask, text, type Call, type Endpoint } from '../core.ts';
import { ConnectionClosed, dieWith, paramError } from '../errors.ts';
import { common } from '../schema.ts';
import { storedFileName } from '../uploadParser.ts';
import type { Volume } from '../volumes.ts';
import { isoVolume } from './volume.ts';

export const uploadEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/nodes/{node}/storage/{storage}/upload',
    protected: true,
    schema: {
      content: { type: 'string', enum: ['iso', 'vztmpl', 'import'] },
      filename: { type: 'string', maxLength: 255 },
      checksum: common.optionalString,
      'checksum-algorithm': {
        type: 'string',
        optional: true,
        enum: ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512'],
      },
    },
    handler: upload,
  },
];

async function upload(call: Call): Promise<string> {
  const { core, params } = call;
  const storages = core.cluster.storages;
  const node = targetNode(call);
  const id = text(params, 'storage');
  const content = text(params, 'content');
  const storage = storages.check(id, node);
  if (!storages.isFileBased(storage))
    throw dieWith(`can't upload to storage type '${storage.type}'`);
  if (!storage.content.some((own) => own === content)) {
    throw dieWith(`storage '${id}' does not support '${content}' content`);
  }
  const name = storedFileName(text(params, 'filename'));
  const checksum = optionalText(params, 'checksum');
  const algorithm = optionalText(params, 'checksum-algorithm');
  if (checksum !== undefined && algorithm === undefined) {
    throw paramError({ checksum: "missing required property - 'checksum-algorithm'" });
  }
  await reachForUpload(call, node, id);
  const data = call.upload?.data ?? Buffer.alloc(0);
  const temporary = `/var/tmp/pveupload-${randomBytes(16).toString('hex')}`;
  // The task runs on the node that took the request, whatever the path says (pve/cluster.md 1).
  return startTask(
    call,
    'imgcopy',
    '',
    async (worker) => {
      const volume: Volume = {
        ...isoVolume(id, `iso/${name}`),
        node: storage.shared ? null : node,
        size: data.length,
        used: data.length,
        ctime: Math.floor(core.clock.now() / 1000),
        bytes: data,
      };
      const target = storages.path(volume);
      worker.log(`starting file import from: ${temporary}`);
      if (checksum !== undefined && algorithm !== undefined) {
        const actual = createHash(algorithm).update(data).digest('hex');
        if (actual !== checksum.toLowerCase()) {
          throw dieWith(`checksum mismatch: got '${actual}' != expect '${checksum}'`);
        }
        worker.log('calculating checksum...OK, checksum verified');
      }
      worker.log(`target node: ${node}`);
      worker.log(`target file: ${target}`);
      worker.log(`file size is: ${data.length}`);
      worker.log(`command: ${copyCommand(call, node, temporary, target)}`);
      await worker.sleep(core.times.uploadSeconds);
      const room = storage.availBytes ?? storage.totalBytes - storages.usedBytes(storage, node);
      if (data.length > room) {
        throw dieWith(`import failed: cp: error writing '${target}': No space left on device`);
      }
      storages.add(volume);
      worker.log('finished file import successfully');
    },
    { node: call.entryNode },
  );
}

function targetNode(call: Call): string {
  const node = text(call.params, 'node');
  return node === 'localhost' ? call.entryNode : node;
}

function copyCommand(call: Call, node: string, from: string, to: string): string {
  if (node === call.entryNode) return `cp -- ${from} ${to}`;
  const ip = call.core.cluster.nodes.get(node)?.ip ?? '';
  return `/usr/bin/scp -o BatchMode=yes -o HostKeyAlias=${node} -o UserKnownHostsFile=/etc/pve/nodes/${node}/ssh_known_hosts -o GlobalKnownHostsFile=none -p -- ${from} [${ip}]:${to}`;
}

/**
 * An upload is not proxied: the entry node logs in to the target by ssh, twice, before it answers. If that takes over
 * five seconds the connection is closed and the temporary file deleted, while the task still starts
 * (pve/cluster.md 8, 9).
 */
async function reachForUpload(call: Call, node: string, storage: string): Promise<void> {
  const { core } = call;
  if (node === call.entryNode) {
    core.cluster.storages.activate(storage, node);
    return;
  }
  const state = core.cluster.nodes.get(node);
  const seconds = state?.state === 'cut' ? core.times.cutNodeSeconds : (state?.sshSeconds ?? 0);
  if (seconds > UPLOAD_PATIENCE_SECONDS) {
    await core.clock.sleep(UPLOAD_PATIENCE_SECONDS);
    void failLater(call, seconds - UPLOAD_PATIENCE_SECONDS);
    throw new ConnectionClosed();
  }
  if (state?.state === 'up') {
    await core.clock.sleep(seconds);
    return;
  }
  await core.clock.sleep(core.times.deadNodeSeconds);
  throw dieWith(
    `can't activate storage '${storage}' on node '${node}': command '/usr/bin/ssh -o 'BatchMode=yes' -o 'HostKeyAlias=${node}' -o 'UserKnownHostsFile=/etc/pve/nodes/${node}/ssh_known_hosts' -o 'GlobalKnownHostsFile=none' ${state?.ip ?? ''} -- /usr/sbin/pvesm status --storage ${storage}' failed: exit code 255\n`,
  );
}

const UPLOAD_PATIENCE_SECONDS = 5;

/** The task that nobody is told of. */
async function failLater(call: Call, seconds: number): Promise<void> {
  await call.core.clock.sleep(seconds);
  const temporary = `/var/tmp/pveupload-${randomBytes(16).toString('hex')}`;
  call.core.tasks.start(
    { node: call.entryNode, type: 'imgcopy', id: '', authId: call.who.authId },
    () => Promise.reject(new Error(`failed to stat '${temporary}'`)),
  );
}
