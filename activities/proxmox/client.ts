/** `ProxmoxApi` over HTTP: one method, one request. Paths and parameters as in pve/README and testdata/pve/9.2. */
import type { z } from 'zod';
import { permanent, transient } from '../providerError.ts';
import type { ProviderError } from '../providerError.ts';
import type { CallContext, ProxmoxApi, Upid } from './api.ts';
import {
  agentInterfacesAnswer,
  contentRowsAnswer,
  nodeRowsAnswer,
  nodeStatusAnswer,
  nothingAnswer,
  permissionTableAnswer,
  storageStatusAnswer,
  taskLogAnswer,
  taskRowsAnswer,
  taskStatusAnswer,
  upidAnswer,
  upidOrNullAnswer,
  upidPattern,
  versionAnswer,
  vmConfigAnswer,
  vmRowsAnswer,
  vmStatusAnswer,
  volumeAnswer,
} from './answers.ts';
import { classifyUnreadable } from './classifyTransport.ts';
import type { HttpRequest } from './exchange.ts';
import type { ProxmoxHttp } from './http.ts';
import { isoUploadBody } from './upload.ts';
import type { Attempt } from './classifyVerdict.ts';

/** The node a task runs on: only it knows the task (pve/cluster.md 1, 2). Throws Transient `ApiError` for no UPID. */
export function upidNode(upid: Upid): string {
  const node = upidPattern.exec(upid)?.groups?.node;
  if (node !== undefined) return node;
  const problem = `${JSON.stringify(upid)} is not the UPID of a Proxmox task`;
  throw transient('ApiError', problem, { goBack: true });
}

type Fields = Omit<Attempt, 'provider' | 'call' | 'method'>;
type Wire = Omit<HttpRequest, 'attempt' | 'path'>;

/** The API of one provider, bound to one attempt of a step. */
export function createProxmoxApi(
  provider: string,
  http: ProxmoxHttp,
  call: CallContext,
): ProxmoxApi {
  async function ask<T>(
    [name, method]: [keyof ProxmoxApi, Attempt['method']],
    fields: Fields,
    path: string,
    schema: z.ZodType<T>,
    wire: Wire = {},
  ): Promise<T> {
    const attempt: Attempt = { provider, call: name, method, ...fields };
    const data = await http.send(call, { attempt, path, ...wire });
    const parsed = schema.safeParse(data);
    if (parsed.success) return parsed.data;
    const where = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    const problem = `the answer is not what the API sends (${where.slice(0, 3).join('; ')})`;
    throw classifyUnreadable(attempt, problem, 200, parsed.error);
  }

  return {
    getVersion: async () =>
      ask(['getVersion', 'GET'], { what: 'read the version' }, '/version', versionAnswer),
    listVms: async () =>
      ask(['listVms', 'GET'], { what: 'list VMs' }, '/cluster/resources', vmRowsAnswer, {
        query: { type: 'vm' },
      }),
    listNodes: async () =>
      ask(['listNodes', 'GET'], { what: 'list nodes' }, '/nodes', nodeRowsAnswer),
    getNodeStatus: async (node) =>
      ask(
        ['getNodeStatus', 'GET'],
        { what: `read the status of node ${node}`, node },
        `/nodes/${piece(node)}/status`,
        nodeStatusAnswer,
      ),
    listPermissions: async () => {
      const fields = { what: "list the token's privileges" };
      const endpoint = '/access/permissions';
      return ask(['listPermissions', 'GET'], fields, endpoint, permissionTableAnswer);
    },
    getPermissions: async (path) => {
      const fields = { what: `read the token's privileges on ${path}` };
      const wire = { query: { path } };
      const endpoint = '/access/permissions';
      const held = await ask(
        ['getPermissions', 'GET'],
        fields,
        endpoint,
        permissionTableAnswer,
        wire,
      );
      return held.get(path) ?? new Map();
    },

    getVmConfig: async (node, vmid) =>
      ask(
        ['getVmConfig', 'GET'],
        { what: `read the config of VM ${vmid} on ${node}`, node, vmid },
        `${vm(node, vmid)}/config`,
        vmConfigAnswer,
      ),
    getVmStatus: async (node, vmid) =>
      ask(
        ['getVmStatus', 'GET'],
        { what: `read the status of VM ${vmid} on ${node}`, node, vmid },
        `${vm(node, vmid)}/status/current`,
        vmStatusAnswer,
      ),
    clone: async (node, templateVmid, params) => {
      const { newid, storage, target } = params;
      const what = `clone template ${templateVmid} to VM ${newid} on ${target ?? node}`;
      const form = {
        newid: String(newid),
        name: params.name,
        description: params.description,
        // A template is cloned linked by default (api-facts 5.13).
        full: '1',
        ...(storage === undefined ? {} : { storage }),
        ...(target === undefined ? {} : { target }),
      };
      const path = `${vm(node, templateVmid)}/clone`;
      return ask(['clone', 'POST'], { what, node, vmid: newid }, path, upidAnswer, { form });
    },
    setVmConfig: async (node, vmid, set, options) => {
      const keys = [...Object.keys(set), ...(options.delete ?? [])].join(', ');
      const form = {
        ...set,
        ...(options.delete === undefined || options.delete.length === 0
          ? {}
          : { delete: options.delete.join(',') }),
        digest: options.digest,
      };
      const fields = { what: `write ${keys} of VM ${vmid} on ${node}`, node, vmid };
      await ask(['setVmConfig', 'PUT'], fields, `${vm(node, vmid)}/config`, nothingAnswer, {
        form,
      });
    },
    resize: async (node, vmid, disk, size, digest) =>
      ask(
        ['resize', 'PUT'],
        { what: `resize ${disk} of VM ${vmid} on ${node} to ${size}`, node, vmid },
        `${vm(node, vmid)}/resize`,
        upidAnswer,
        { form: { disk, size, digest } },
      ),
    start: async (node, vmid) =>
      ask(
        ['start', 'POST'],
        { what: `start VM ${vmid} on ${node}`, node, vmid },
        `${vm(node, vmid)}/status/start`,
        upidAnswer,
      ),
    resume: async (node, vmid) =>
      ask(
        ['resume', 'POST'],
        { what: `resume VM ${vmid} on ${node}`, node, vmid },
        `${vm(node, vmid)}/status/resume`,
        upidAnswer,
      ),
    stop: async (node, vmid) =>
      ask(
        ['stop', 'POST'],
        { what: `stop VM ${vmid} on ${node}`, node, vmid },
        `${vm(node, vmid)}/status/stop`,
        upidAnswer,
      ),
    destroy: async (node, vmid, { destroyUnreferencedDisks }) =>
      ask(
        ['destroy', 'DELETE'],
        { what: `destroy VM ${vmid} on ${node}`, node, vmid },
        vm(node, vmid),
        upidAnswer,
        {
          query: {
            purge: '1',
            'destroy-unreferenced-disks': destroyUnreferencedDisks ? '1' : '0',
          },
        },
      ),

    uploadIso: async (node, storage, filename, image) => {
      const what = `upload ${filename} to storage ${storage} on ${node}`;
      const wire = {
        multipart: isoUploadBody(filename, image),
        extraMs: 1_000 * Math.ceil(image.byteLength / (1024 * 1024)),
      };
      const path = `${storageAt(node, storage)}/upload`;
      return ask(['uploadIso', 'POST'], { what, node, storage }, path, upidAnswer, wire);
    },
    listIsos: async (node, storage) =>
      ask(
        ['listIsos', 'GET'],
        { what: `list ISO images of storage ${storage} on ${node}`, node, storage },
        `${storageAt(node, storage)}/content`,
        contentRowsAnswer,
        { query: { content: 'iso' } },
      ),
    deleteVolume: async (node, storage, volid) =>
      ask(
        ['deleteVolume', 'DELETE'],
        { what: `delete ${volid} on ${node}`, node, storage },
        `${storageAt(node, storage)}/content/${piece(volid)}`,
        upidOrNullAnswer,
      ),
    getVolumeSize: async (node, storage, volid) => {
      const fields = { what: `read the size of ${volid} on ${node}`, node, storage };
      const path = `${storageAt(node, storage)}/content/${piece(volid)}`;
      const { size } = await ask(['getVolumeSize', 'GET'], fields, path, volumeAnswer);
      return size;
    },
    getStorageStatus: async (node, storage) =>
      ask(
        ['getStorageStatus', 'GET'],
        { what: `read the status of storage ${storage} on ${node}`, node, storage },
        `${storageAt(node, storage)}/status`,
        storageStatusAnswer,
      ),

    getTask: async (upid) =>
      ask(['getTask', 'GET'], taskFields('read', upid), `${task(upid)}/status`, taskStatusAnswer),
    getTaskLog: async (upid, limit) =>
      ask(
        ['getTaskLog', 'GET'],
        taskFields('read the log of', upid),
        `${task(upid)}/log`,
        taskLogAnswer,
        { query: { start: '0', limit: String(limit) } },
      ),
    abortTask: async (upid) => {
      await ask(['abortTask', 'DELETE'], taskFields('abort', upid), task(upid), nothingAnswer);
    },
    listTasks: async (node, filter) => {
      const { type, vmid, since, activeOnly, limit } = filter;
      const query = {
        source: activeOnly === true ? 'active' : 'all',
        ...(type === undefined ? {} : { typefilter: type }),
        ...(vmid === undefined ? {} : { vmid: String(vmid) }),
        ...(since === undefined ? {} : { since: String(since) }),
        ...(limit === undefined ? {} : { limit: String(limit) }),
      };
      const fields = { what: `list tasks of ${node}`, node };
      const path = `/nodes/${piece(node)}/tasks`;
      return ask(['listTasks', 'GET'], fields, path, taskRowsAnswer, { query });
    },

    getAgentInterfaces: async (node, vmid) =>
      ask(
        ['getAgentInterfaces', 'GET'],
        { what: `ask the guest agent of VM ${vmid} on ${node}`, node, vmid },
        `${vm(node, vmid)}/agent/network-get-interfaces`,
        agentInterfacesAnswer,
      ),
    tokenId: () => http.tokenId(),
  };
}

/** One segment of a path. An empty or dotted one would name another resource. */
function piece(value: string): string {
  if (value === '' || value === '.' || value === '..') {
    throw internal(`${JSON.stringify(value)} cannot be part of a request path`);
  }
  return encodeURIComponent(value);
}

function vm(node: string, vmid: number): string {
  if (!Number.isSafeInteger(vmid) || vmid < 100) throw internal(`${vmid} is not a VMID`);
  return `/nodes/${piece(node)}/qemu/${vmid}`;
}

function storageAt(node: string, storage: string): string {
  return `/nodes/${piece(node)}/storage/${piece(storage)}`;
}

function task(upid: Upid): string {
  return `/nodes/${piece(upidNode(upid))}/tasks/${piece(upid)}`;
}

function taskFields(verb: string, upid: Upid): Fields {
  return { what: `${verb} task ${upid}`, node: upidNode(upid), upid };
}

/** Nothing was sent: a fault of ours, which no retry mends. */
function internal(message: string): ProviderError {
  return permanent('Internal', message);
}
