import { integer, startTask, storagePrivilege, text, type Call, type Endpoint } from '../core.ts';
import { dieWith, paramError } from '../errors.ts';
import type { StorageFixture } from '../fixture.ts';
import { splitVolid, type Volume } from '../volumes.ts';

/** One volume of a storage. */
export const volumeEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content/{volume...}',
    proxied: true,
    protected: true,
    schema: {},
    check: storagePrivilege('Datastore.Audit', 'Datastore.AllocateSpace'),
    handler: showVolume,
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/storage/{storage}/content/{volume...}',
    proxied: true,
    protected: true,
    schema: { delay: { type: 'integer', optional: true, minimum: 1, maximum: 30 } },
    handler: deleteVolume,
  },
];

/** `iso/x.iso` or `storage:iso/x.iso`; throws the captured 400 and 500 texts. */
function parseVolume(params: Call['params']): { storage: string; name: string; volid: string } {
  const storage = text(params, 'storage');
  const given = text(params, 'volume');
  const split = splitVolid(given) ?? { storage, name: given };
  if (split.storage !== storage) {
    throw paramError({ volume: `storage ID mismatch (${split.storage} != ${storage})\n` });
  }
  return { ...split, volid: `${storage}:${split.name}` };
}

function checkVolumeName(call: Call, storage: StorageFixture, name: string): void {
  if (!call.core.cluster.storages.isFileBased(storage)) return;
  const isIso = /^iso\/[^/]+\.(iso|img)$/i.test(name);
  const isImage = /^(\d+\/|.*\/\d+\/)/.test(name);
  if (!isIso && !isImage) throw dieWith(`unable to parse directory volume name '${name}'`);
}

function showVolume(call: Call): unknown {
  const { storage, name, volid } = parseVolume(call.params);
  const definition_ = call.core.cluster.storages.check(storage, call.node);
  checkVolumeName(call, definition_, name);
  const volume = call.core.cluster.storages.lookup(volid, call.node);
  const path = call.core.cluster.storages.isFileBased(definition_) ? name : volid;
  if (volume === undefined) throw dieWith(`volume_size_info on '${path}' failed - no format`);
  return {
    path: call.core.cluster.storages.path(volume),
    size: volume.size,
    used: volume.used,
    format: volume.format === 'iso' ? 'raw' : volume.format,
  };
}

async function deleteVolume(call: Call): Promise<string | null> {
  const { core, node, who, params } = call;
  const { storage: id, name, volid } = parseVolume(params);
  const storages = core.cluster.storages;
  const storage = storages.get(id);
  checkVolumeName(call, storage, name);
  const volume = storages.lookup(volid, node);
  const owner = volume?.vmid ?? null;
  const mayAll = core.access.has(who, `/storage/${id}`, 'Datastore.Allocate');
  const mayOwn = owner !== null && core.access.has(who, `/vms/${owner}`, 'VM.Config.Disk');
  if (!mayAll && !mayOwn) core.access.require(who, `/storage/${id}`, 'Datastore.Allocate');
  storages.check(id, node);
  const upid = startTask(call, 'imgdel', owner === null ? id : `${owner}@${id}`, async (worker) => {
    await worker.sleep(0.05);
    const found = storages.lookup(volid, node);
    const path = storages.path(found ?? isoVolume(id, name));
    if (found === undefined) worker.log(`disk image '${path}' does not exist`);
    else {
      const child = storages
        .list(id, node)
        .find((entry) => entry.base !== null && entry.base === found.name);
      if (child !== undefined)
        throw dieWith(`base volume '${name}' is still in use by linked clones`);
      storages.remove(found);
    }
    worker.log(`Removed volume '${volid}'`);
  });
  if (params['delay'] === undefined) return upid;
  const task = core.tasks.find(upid);
  if (task === undefined) return upid;
  await Promise.race([core.tasks.ended(task), core.clock.sleep(integer(params, 'delay'))]);
  if (task.running) return upid;
  if (task.exitstatus !== 'OK') throw dieWith(task.exitstatus ?? '');
  return null;
}

/** An ISO file without content, on no node in particular. */
export function isoVolume(storage: string, name: string): Volume {
  return {
    storage,
    name,
    node: null,
    content: 'iso',
    format: 'iso',
    size: 0,
    used: 0,
    ctime: 0,
    vmid: null,
    base: null,
    bytes: null,
  };
}
