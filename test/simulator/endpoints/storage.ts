import { createHash } from 'node:crypto';
import {
  flag,
  integer,
  optionalText,
  storagePrivilege,
  text,
  type Call,
  type Endpoint,
} from '../core.ts';
import { paramError } from '../errors.ts';
import type { StorageFixture } from '../fixture.ts';
import { common, formats } from '../schema.ts';
import { volidOf, type Volume } from '../volumes.ts';

const CONTENT_TYPES = [
  'images',
  'rootdir',
  'vztmpl',
  'iso',
  'backup',
  'snippets',
  'import',
  'none',
];

const contentFilter = {
  type: 'string',
  optional: true,
  list: true,
  format: (value: string): string | null => {
    const bad = value.split(',').find((entry) => !CONTENT_TYPES.includes(entry));
    return bad === undefined ? null : `invalid content type '${bad}'`;
  },
} as const;

export const storageEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/storage',
    proxied: true,
    protected: true,
    schema: {
      content: contentFilter,
      storage: common.optionalStorage,
      enabled: common.optionalBoolean,
      target: common.optionalString,
      format: common.optionalBoolean,
    },
    handler: listStorages,
  },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/status',
    proxied: true,
    protected: true,
    schema: {},
    check: storagePrivilege('Datastore.Audit', 'Datastore.AllocateSpace'),
    handler: async ({ core, node, params }) => {
      await activateAll({ core, node }, core.cluster.storages.all);
      const storage = core.cluster.storages.find(text(params, 'storage'));
      if (storage === undefined) throw paramError({ storage: 'No such storage.' });
      return statusOf({ core, node }, storage);
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content',
    proxied: true,
    protected: true,
    schema: {
      content: contentFilter,
      vmid: { type: 'integer', optional: true, format: formats.vmid },
    },
    check: storagePrivilege('Datastore.Audit', 'Datastore.AllocateSpace'),
    handler: listContent,
  },
  {
    method: 'GET',
    path: '/storage',
    schema: { type: common.optionalString },
    handler: ({ core, who }) =>
      core.cluster.storages.all
        .filter((storage) =>
          core.access.has(
            who,
            `/storage/${storage.id}`,
            'Datastore.Audit',
            'Datastore.AllocateSpace',
          ),
        )
        .map(definition),
  },
  {
    method: 'GET',
    path: '/storage/{storage}',
    schema: {},
    check: storagePrivilege('Datastore.Allocate'),
    handler: ({ core, params }) => definition(core.cluster.storages.get(text(params, 'storage'))),
  },
];

function definition(storage: StorageFixture): Record<string, unknown> {
  return {
    storage: storage.id,
    type: storage.type,
    path: storage.path ?? (storage.id === 'local' ? '/var/lib/vz' : `/srv/${storage.id}`),
    content: storage.content.join(','),
    ...(storage.nodes === undefined ? {} : { nodes: storage.nodes.join(',') }),
    ...(storage.disabled ? { disable: 1 } : {}),
    ...(storage.shared ? { shared: 1 } : {}),
    ...(storage.mounted ? {} : { is_mountpoint: 'yes' }),
    digest: createHash('sha1').update(storage.id).digest('hex'),
  };
}

type Where = Pick<Call, 'core' | 'node'>;

function statusOf({ core, node }: Where, storage: StorageFixture): Record<string, unknown> {
  const enabled = core.cluster.storages.enabledOn(storage, node);
  const active = enabled && storage.mounted;
  const used = core.cluster.storages.usedBytes(storage, node);
  return {
    type: storage.type,
    content: storage.content.join(','),
    shared: storage.shared ? 1 : 0,
    enabled: enabled ? 1 : 0,
    active: active ? 1 : 0,
    total: active ? storage.totalBytes : 0,
    used: active ? used : 0,
    avail: active ? (storage.availBytes ?? Math.max(0, storage.totalBytes - used)) : 0,
  };
}

/** Every enabled storage is activated, one after the other, whichever was asked for (api-facts 5.6). */
async function activateAll(where: Where, storages: readonly StorageFixture[]): Promise<void> {
  for (const storage of storages) {
    if (!where.core.cluster.storages.enabledOn(storage, where.node)) continue;
    if (storage.slowSeconds !== undefined) await where.core.clock.sleep(storage.slowSeconds);
  }
}

async function listStorages(call: Call): Promise<unknown[]> {
  const { core, params, who } = call;
  const content = optionalText(params, 'content')?.split(',');
  const only = optionalText(params, 'storage');
  const wanted = (storage: StorageFixture): boolean =>
    content === undefined || content.some((type) => storage.content.some((own) => own === type));
  await activateAll(call, core.cluster.storages.all.filter(wanted));
  return core.cluster.storages.all
    .filter((storage) => only === undefined || storage.id === only)
    .filter((storage) =>
      core.access.has(who, `/storage/${storage.id}`, 'Datastore.Audit', 'Datastore.AllocateSpace'),
    )
    .filter((storage) => {
      const enabled = core.cluster.storages.enabledOn(storage, call.node);
      if (content !== undefined) return enabled && wanted(storage);
      // `enabled` looks only at the flag, not at the list of nodes (02-node-storage-list-enabled).
      return flag(params, 'enabled') !== true || !storage.disabled;
    })
    .map((storage) => {
      const status = statusOf(call, storage);
      const total = Number(status['total']);
      return {
        storage: storage.id,
        ...status,
        ...(total > 0 ? { used_fraction: Number(status['used']) / total } : {}),
      };
    });
}

async function listContent(call: Call): Promise<unknown[]> {
  const { core, node, params, who } = call;
  const id = text(params, 'storage');
  await activateAll(call, [core.cluster.storages.check(id, node)]);
  const storage = core.cluster.storages.activate(id, node);
  const wanted = optionalText(params, 'content')?.split(',');
  const vmid = params['vmid'] === undefined ? null : integer(params, 'vmid');
  return core.cluster.storages
    .list(storage.id, node)
    .filter((volume) => wanted === undefined || wanted.includes(volume.content))
    .filter((volume) => vmid === null || volume.vmid === vmid)
    .filter(
      (volume) =>
        volume.content !== 'images' ||
        core.access.has(who, `/storage/${storage.id}`, 'Datastore.Allocate') ||
        core.access.has(who, `/vms/${volume.vmid ?? 0}`, 'VM.Config.Disk'),
    )
    .sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
    .map((volume) => contentRow(volume));
}

function contentRow(volume: Volume): Record<string, unknown> {
  return {
    volid: volidOf(volume),
    content: volume.content,
    format: volume.format,
    size: volume.size,
    ctime: volume.ctime,
    ...(volume.content === 'images'
      ? {
          vmid: volume.vmid,
          used: volume.used,
          parent: volume.base === null ? null : `../${volume.base}`,
        }
      : {}),
  };
}
