import { isOnline, type HaResource } from '../cluster.ts';
import { text, type Call, type Check, type Core, type Endpoint } from '../core.ts';
import { dieWith, paramError } from '../errors.ts';
import { common } from '../schema.ts';

const audit = ({ core, who }: Check): void => {
  core.access.require(who, '/', 'Sys.Audit');
};
const console_ = ({ core, who }: Check): void => {
  core.access.require(who, '/', 'Sys.Console');
};

const STATES = ['started', 'stopped', 'enabled', 'disabled', 'ignored'];

export const haEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/cluster/ha/resources',
    schema: { type: common.optionalString },
    check: audit,
    handler: ({ core }) =>
      [...core.cluster.ha.resources.values()].map((resource) => ({
        sid: `vm:${resource.vmid}`,
        type: 'vm',
        state: resource.wanted,
      })),
  },
  {
    method: 'POST',
    path: '/cluster/ha/resources',
    protected: true,
    schema: {
      sid: common.optionalString,
      state: { type: 'string', optional: true, enum: STATES },
      comment: common.optionalString,
      max_restart: common.optionalInteger,
      max_relocate: common.optionalInteger,
      failback: common.optionalBoolean,
      type: common.optionalString,
    },
    check: console_,
    handler: ({ core, params }) => {
      const vmid = vmidOf(text(params, 'sid'));
      if (core.cluster.ha.resources.has(vmid)) {
        throw dieWith(`resource ID 'vm:${vmid}' already defined`);
      }
      core.cluster.ha.resources.set(vmid, newHaResource(vmid, wantedState(text(params, 'state'))));
      return null;
    },
  },
  {
    method: 'PUT',
    path: '/cluster/ha/resources/{sid}',
    protected: true,
    schema: { state: { type: 'string', optional: true, enum: STATES } },
    check: console_,
    handler: ({ core, params }) => {
      const resource = core.cluster.ha.resources.get(vmidOf(text(params, 'sid')));
      if (resource === undefined) throw dieWith(`no such resource '${text(params, 'sid')}'`);
      const wanted = wantedState(text(params, 'state'));
      if (wanted === 'disabled') Object.assign(resource, newHaResource(resource.vmid, wanted));
      resource.wanted = wanted;
      return null;
    },
  },
  {
    method: 'DELETE',
    path: '/cluster/ha/resources/{sid}',
    protected: true,
    schema: { purge: common.optionalBoolean },
    check: console_,
    handler: ({ core, params }) => {
      core.cluster.ha.resources.delete(vmidOf(text(params, 'sid')));
      return null;
    },
  },
  {
    method: 'GET',
    path: '/cluster/ha/status/current',
    schema: {},
    check: audit,
    handler: (call) => statusRows(call),
  },
];

function vmidOf(sid: string): number {
  const vmid = /^(?:vm:)?(\d+)$/.exec(sid)?.[1];
  if (vmid === undefined) throw paramError({ sid: `invalid format - unable to parse service id` });
  return Number(vmid);
}

function wantedState(state: string): HaResource['wanted'] {
  if (state === 'stopped' || state === 'ignored' || state === 'disabled') return state;
  return 'started';
}

export function newHaResource(vmid: number, wanted: HaResource['wanted']): HaResource {
  return {
    vmid,
    wanted,
    state: null,
    confirmed: false,
    migrateTo: null,
    node: null,
    stopCommand: null,
    stopTimeoutSeconds: 0,
    failures: 0,
    relocated: false,
    busy: false,
    recoveredAt: 0,
  };
}

/** Rows of `ha-manager status`; the managers' own appear once there was something to manage. */
function statusRows({ core, entryNode }: Call): unknown[] {
  const { ha, nodes } = core.cluster;
  const master = entryNode;
  const quorate = nodes.get(entryNode)?.quorum === true;
  const armed = ha.active;
  const rows: unknown[] = [
    {
      id: 'quorum',
      type: 'quorum',
      node: master,
      quorate: quorate ? 1 : 0,
      status: quorate ? 'OK' : 'No quorum on node',
    },
  ];
  if (armed) {
    rows.push({
      id: 'master',
      type: 'master',
      node: master,
      timestamp: seconds(core),
      status: `${master} (active, ${stamp(core)})`,
    });
  }
  rows.push({
    id: 'fencing',
    type: 'fencing',
    node: master,
    'armed-state': armed ? 'armed' : 'standby',
    status: armed ? 'armed (CRM watchdog active)' : 'standby (CRM watchdog standby)',
  });
  for (const node of armed ? nodes.values() : []) {
    if (node.state === 'absent') continue;
    const state = isOnline(node, core.clock)
      ? 'active, watchdog active'
      : 'old timestamp - dead?, watchdog standby';
    rows.push({
      id: `lrm:${node.name}`,
      type: 'lrm',
      node: node.name,
      timestamp: seconds(core),
      status: `${node.name} (${state}, ${stamp(core)})`,
    });
  }
  for (const resource of ha.resources.values()) rows.push(serviceRow(core, resource));
  return rows;
}

function serviceRow(core: Core, resource: HaResource): unknown {
  const node = resource.node ?? core.cluster.vms.get(resource.vmid)?.node ?? '';
  const starting =
    (resource.state === 'started' && !resource.confirmed) ||
    (resource.state === 'stopped' && resource.wanted === 'started');
  const state = resource.state === null ? 'queued' : starting ? 'starting' : resource.state;
  const sid = `vm:${resource.vmid}`;
  return {
    id: `service:${sid}`,
    type: 'service',
    sid,
    node,
    state,
    status: `${sid} (${node}, ${state})`,
    request_state: resource.wanted,
    ...(resource.state === null ? {} : { crm_state: resource.state }),
    failback: 1,
    max_relocate: 1,
    max_restart: 1,
  };
}

function seconds(core: Core): number {
  return Math.floor(core.clock.now() / 1000);
}

/** `Sun Nov 29 15:18:30 2026`. */
function stamp(core: Core): string {
  const [day = '', date = '', month = '', year = '', time = ''] = new Date(core.clock.now())
    .toUTCString()
    .split(/,? /);
  return `${day} ${month} ${date} ${time} ${year}`;
}
