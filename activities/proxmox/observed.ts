/**
 * The API as seen from outside: one line and one count a request (specification, Logging). No span is opened here;
 * the line carries the ids of the step's span. Never in a line: token, CA, cloud-init, bodies of uploads.
 */
import { trace } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { ProviderError } from '../providerError.ts';
import type { ProxmoxApi, VmConfig } from './api.ts';

/** One finished request, for the metric `proxy_operator_api_requests_total`. */
export interface RequestSeen {
  provider: string;
  /** Seam method, for example `clone`. */
  method: keyof ProxmoxApi;
  /** `ok`, the reason of the failure, or `cancelled`. */
  outcome: string;
  seconds: number;
}

/** Where observations go. */
export interface Observer {
  log: Logger;
  onRequest?: (seen: RequestSeen) => void;
}

type Fields = Record<string, unknown>;

/** Config keys a trace line shows; a config may hold passwords and keys of cloud-init in others. */
const shownConfigKeys = [
  'name',
  'lock',
  'template',
  'protection',
  'tags',
  'cores',
  'memory',
  'agent',
  'boot',
  'net0',
  'ide2',
];

/** Wraps every method of `api` that sends a request. Behaviour is unchanged. */
export function observed(api: ProxmoxApi, provider: string, observer: Observer): ProxmoxApi {
  const log = observer.log.child({ provider });

  /** `fields` are known before, `result` makes fields of the answer, `extras` are for trace only. */
  async function seen<T>(
    method: keyof ProxmoxApi,
    fields: Fields,
    request: () => Promise<T>,
    { result, extras }: { result?: (value: T) => Fields; extras?: (value?: T) => Fields } = {},
  ): Promise<T> {
    const startedAt = performance.now();
    const finish = (outcome: string, more: () => Fields): void => {
      const seconds = (performance.now() - startedAt) / 1_000;
      observer.onRequest?.({ provider, method, outcome, seconds });
      if (!log.isLevelEnabled('debug')) return;
      const duration = Math.round(seconds * 1_000);
      log.debug({ call: method, ...fields, ...more(), duration, ...spanIds() }, 'proxmox api call');
    };
    const tracing = log.isLevelEnabled('trace');
    try {
      const value = await request();
      finish('ok', () => ({ ...result?.(value), ...(tracing ? extras?.(value) : {}) }));
      return value;
    } catch (error) {
      finish(outcomeOf(error), () => ({ ...(tracing ? extras?.() : {}), ...errorFields(error) }));
      throw error;
    }
  }

  const task = { result: (upid: string | null): Fields => (upid === null ? {} : { upid }) };
  return {
    getVersion: () => seen('getVersion', {}, () => api.getVersion(), { result: (v) => ({ ...v }) }),
    listVms: () =>
      seen('listVms', {}, () => api.listVms(), { extras: (rows) => ({ rows: rows?.length }) }),
    listNodes: () =>
      seen('listNodes', {}, () => api.listNodes(), { extras: (nodes) => ({ nodes }) }),
    getNodeStatus: (node) =>
      seen('getNodeStatus', { node }, () => api.getNodeStatus(node), {
        extras: (status) => ({ ...status }),
      }),
    listPermissions: () =>
      seen('listPermissions', {}, () => api.listPermissions(), {
        extras: (table) => ({ paths: table === undefined ? undefined : [...table.keys()] }),
      }),
    getPermissions: (path) =>
      seen('getPermissions', { path }, () => api.getPermissions(path), {
        extras: (held) => ({ privileges: held === undefined ? undefined : [...held.keys()] }),
      }),
    getVmConfig: (node, vmid) =>
      seen('getVmConfig', { node, vmid }, () => api.getVmConfig(node, vmid), {
        extras: (config) => ({ config: config === undefined ? undefined : summary(config) }),
      }),
    getVmStatus: (node, vmid) =>
      seen('getVmStatus', { node, vmid }, () => api.getVmStatus(node, vmid), {
        extras: (vm) => ({
          status: vm?.status,
          qmpstatus: vm?.qmpstatus,
          lock: vm?.lock,
          vmName: vm?.name,
        }),
      }),
    clone: (node, vmid, params) => {
      const { newid, name, ...rest } = params;
      return seen('clone', { node, vmid, newid, name }, () => api.clone(node, vmid, params), {
        ...task,
        extras: () => ({ ...rest }),
      });
    },
    setVmConfig: (node, vmid, set, options) =>
      seen('setVmConfig', { node, vmid }, () => api.setVmConfig(node, vmid, set, options), {
        extras: () => ({ set: shown(set), delete: options.delete }),
      }),
    resize: (node, vmid, disk, size, digest) =>
      seen('resize', { node, vmid }, () => api.resize(node, vmid, disk, size, digest), {
        ...task,
        extras: () => ({ disk, size }),
      }),
    start: (node, vmid) => seen('start', { node, vmid }, () => api.start(node, vmid), task),
    resume: (node, vmid) => seen('resume', { node, vmid }, () => api.resume(node, vmid), task),
    stop: (node, vmid) => seen('stop', { node, vmid }, () => api.stop(node, vmid), task),
    destroy: (node, vmid, options) =>
      seen('destroy', { node, vmid }, () => api.destroy(node, vmid, options), {
        ...task,
        extras: () => ({ ...options }),
      }),
    uploadIso: (node, storage, filename, image) =>
      seen(
        'uploadIso',
        { node, storage, filename },
        () => api.uploadIso(node, storage, filename, image),
        { ...task, extras: () => ({ bytes: image.byteLength }) },
      ),
    listIsos: (node, storage) =>
      seen('listIsos', { node, storage }, () => api.listIsos(node, storage), {
        extras: (rows) => ({ rows: rows?.length }),
      }),
    deleteVolume: (node, storage, volid) =>
      seen(
        'deleteVolume',
        { node, storage, volid },
        () => api.deleteVolume(node, storage, volid),
        task,
      ),
    getVolumeSize: (node, storage, volid) =>
      seen(
        'getVolumeSize',
        { node, storage, volid },
        () => api.getVolumeSize(node, storage, volid),
        { extras: (bytes) => ({ bytes }) },
      ),
    getStorageStatus: (node, storage) =>
      seen('getStorageStatus', { node, storage }, () => api.getStorageStatus(node, storage), {
        extras: (status) => ({ status }),
      }),
    getTask: (upid) =>
      seen('getTask', { upid }, () => api.getTask(upid), {
        extras: (status) => ({ status: status?.status, exitstatus: status?.exitstatus }),
      }),
    getTaskLog: (upid, limit) =>
      seen('getTaskLog', { upid }, () => api.getTaskLog(upid, limit), {
        extras: (lines) => ({ lines: lines?.length }),
      }),
    abortTask: (upid) => seen('abortTask', { upid }, () => api.abortTask(upid)),
    listTasks: (node, filter) =>
      seen('listTasks', { node }, () => api.listTasks(node, filter), {
        extras: (rows) => ({ filter, rows: rows?.length }),
      }),
    getAgentInterfaces: (node, vmid) =>
      seen('getAgentInterfaces', { node, vmid }, () => api.getAgentInterfaces(node, vmid), {
        extras: (interfaces) => ({
          addresses: interfaces?.flatMap((entry) => entry.addresses.map((a) => a.address)),
        }),
      }),
    tokenId: () => api.tokenId(),
  };
}

function spanIds(): Fields {
  const context = trace.getActiveSpan()?.spanContext();
  return context === undefined ? {} : { traceID: context.traceId, spanID: context.spanId };
}

function outcomeOf(error: unknown): string {
  return error instanceof ProviderError ? error.facts.reason : 'cancelled';
}

function errorFields(error: unknown): Fields {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ProviderError)) return { error: message };
  const { httpStatus } = error.facts;
  return { ...(httpStatus === undefined ? {} : { httpStatus }), error: message };
}

function summary(config: VmConfig): Fields {
  return shown(config.values);
}

/** Values of the keys that are safe to show, names of the others. */
function shown(values: Readonly<Record<string, string>>): Fields {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, isShown(key) ? value : '(not shown)']),
  );
}

function isShown(key: string): boolean {
  return (
    key === 'description' ||
    shownConfigKeys.includes(key) ||
    /^(scsi|virtio|sata|efidisk)\d/.test(key)
  );
}
