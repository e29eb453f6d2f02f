import { requestHandler } from '../dispatch.ts';
import { ENDPOINTS } from '../endpoints/table.ts';
import type { Lab } from './lab.ts';
import { SECRET } from './wire.ts';

/** Probes of one group are answered by one request. */
export function trackGroup(track: string): string {
  return track.split(' ')[0] ?? track;
}

/** Looks once; the values of all tracks of its group. */
export type Probe = () => Promise<Map<string, unknown>>;

/** What to ask for each group of tracks, without sockets: the answers of a moment belong together. */
export function probesFor(lab: Lab, tracks: readonly string[], vmid: string): Map<string, Probe> {
  const nodes = Object.keys(lab.simulator.urls);
  const first = nodes[0] ?? '';
  const probes = new Map<string, Probe>();
  const rows = (node: string, path: string, key: string, group: string): Probe => {
    return async () => {
      const { data } = await ask(lab, node, path);
      const list: unknown[] = Array.isArray(data) ? data : [];
      return new Map(
        list
          .filter(isRecord)
          .map((row): [string, unknown] => [
            `${group} ${String(row[key])}`,
            group.startsWith('node@') ? row['status'] : { ...row, keys: Object.keys(row).length },
          ]),
      );
    };
  };
  const one = (track: string, node: string, path: string): Probe => {
    return async () => {
      const { data, status, reason } = await ask(lab, node, path);
      const failed = track.startsWith('config') ? `${status} ${reason}` : String(status);
      return new Map([[track, status === 200 ? data : failed]]);
    };
  };
  for (const group of new Set(tracks.map(trackGroup))) {
    const [what = '', at] = group.split('@');
    const node = at ?? first;
    const vm = `/nodes/${node}/qemu/${vmid}`;
    if (what === 'resources' || what === 'row') probes.set(group, rowOf(lab, group, first, vmid));
    else if (what === 'config') probes.set(group, one(group, first, `${vm}/config`));
    else if (what === 'current') probes.set(group, one(group, first, `${vm}/status/current`));
    else if (/^\d+$/.test(what))
      probes.set(group, statusOf(lab, `${what} status/current`, first, what));
    else if (what === 'ha') probes.set(group, services(lab, first));
    else if (what === 'vm' || nodes.includes(what)) {
      const entry_ = nodes.includes(what) ? what : node;
      probes.set(group, rows(entry_, '/cluster/resources?type=vm', 'id', group));
    } else if (what === 'node' || what === 'storage') {
      probes.set(group, rows(node, `/cluster/resources?type=${what}`, 'id', group));
    } else if (what === 'nodes') probes.set(group, rows(node, '/nodes', 'node', group));
    else if (what === 'cluster' || what === 'c') {
      probes.set(group, rows(node, '/cluster/status', 'id', group));
    }
  }
  return probes;
}

function rowOf(lab: Lab, track: string, node: string, vmid: string): Probe {
  return async () => {
    const { data } = await ask(lab, node, '/cluster/resources?type=vm');
    const list: unknown[] = Array.isArray(data) ? data : [];
    return new Map([
      [track, list.filter(isRecord).find((row) => row['id'] === `qemu/${vmid}`) ?? null],
    ]);
  };
}

/** Status line and state, asked where the VM is. */
function statusOf(lab: Lab, track: string, entryNode: string, vmid: string): Probe {
  return async () => {
    const node = lab.simulator.cluster.vms.get(Number(vmid))?.node ?? entryNode;
    const path = `/nodes/${node}/qemu/${vmid}/status/current`;
    const { data, status, reason } = await ask(lab, entryNode, path);
    const state = isRecord(data) ? data['status'] : null;
    return new Map([[track, [`HTTP/1.1 ${status} ${reason}`, state]]]);
  };
}

function services(lab: Lab, node: string): Probe {
  return async () => {
    const { data } = await ask(lab, node, '/cluster/ha/status/current');
    const list: unknown[] = Array.isArray(data) ? data : [];
    const own = list.filter(isRecord).filter((row) => row['type'] === 'service');
    const keys = ['status', 'state', 'crm_state', 'request_state', 'node'];
    const shown = own.map((row): [string, unknown] => [
      String(row['id']),
      withoutNulls(Object.fromEntries(keys.map((key) => [key, row[key] ?? null]))),
    ]);
    return new Map([['ha', Object.fromEntries(shown)]]);
  };
}

/** Without the keys that are null: the captured files show some of them, some not. */
export function withoutNulls(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== null)
      .map(([key, item]): [string, unknown] => [key, isRecord(item) ? withoutNulls(item) : item])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

async function ask(
  lab: Lab,
  node: string,
  path: string,
): Promise<{ status: number; reason: string; data: unknown }> {
  const handler = requestHandler(lab.simulator.core, node, ENDPOINTS, []);
  const head = {
    method: 'GET',
    target: `/api2/json${path}`,
    version: '1.1',
    headers: new Map([['authorization', `PVEAPIToken=proxy-operator@pve!operator=${SECRET}`]]),
    contentLength: 0,
  };
  const outcome = await handler.handle(head, Buffer.alloc(0), handler.connect());
  if (typeof outcome === 'string') return { status: 0, reason: outcome, data: null };
  const text = outcome.body.toString('utf8');
  const parsed: unknown = text === '' ? null : JSON.parse(text);
  const data = isRecord(parsed) ? parsed['data'] : null;
  return { status: outcome.status, reason: outcome.reason, data };
}

/** An object with keys. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
