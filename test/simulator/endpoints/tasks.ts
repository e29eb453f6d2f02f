import {
  flag,
  integer,
  Listing,
  optionalText,
  text,
  type Call,
  type Core,
  type Endpoint,
} from '../core.ts';
import type { Identity } from '../auth.ts';
import { paramError } from '../errors.ts';
import { common, formats, type Schema } from '../schema.ts';
import { parseUpid, type ParsedUpid, type Task } from '../tasks.ts';

const LIST_SCHEMA: Schema = {
  start: common.optionalInteger,
  limit: common.optionalInteger,
  userfilter: common.optionalString,
  typefilter: common.optionalString,
  vmid: { type: 'integer', optional: true, format: formats.vmid },
  errors: common.optionalBoolean,
  source: { type: 'string', optional: true, enum: ['archive', 'active', 'all'] },
  since: common.optionalInteger,
  until: common.optionalInteger,
  statusfilter: { type: 'string', optional: true, list: true },
};

export const taskEndpoints: readonly Endpoint[] = [
  { method: 'GET', path: '/nodes/{node}/tasks', proxied: true, schema: LIST_SCHEMA, handler: list },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}/status',
    proxied: true,
    schema: {},
    handler: status,
  },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}/log',
    proxied: true,
    schema: {
      start: common.optionalInteger,
      limit: common.optionalInteger,
      download: common.optionalBoolean,
    },
    handler: log,
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/tasks/{upid}',
    proxied: true,
    protected: true,
    schema: {},
    handler: async (call) => {
      const upid = text(call.params, 'upid');
      checkOwner(call, upid, 'Sys.Modify');
      const task = findOn(call.core, call.node, upid);
      if (task !== undefined) await call.core.tasks.stop(task);
      return null;
    },
  },
];

/** Throws 400 for what is no UPID, 403 for other people's tasks (api-facts 2.2). */
function checkOwner(call: Call, upid: string, privilege: string): ParsedUpid {
  const parsed = parseUpid(upid);
  if (parsed === null) throw paramError({ upid: 'unable to parse worker upid' });
  if (!owns(call.who, parsed.authId)) {
    call.core.access.require(call.who, `/nodes/${call.node}`, privilege);
  }
  return parsed;
}

/** A token sees its own tasks; a user would see those of all his tokens. */
function owns(who: Identity, authId: string): boolean {
  return authId === who.authId || (who.token === null && authId.startsWith(`${who.user}!`));
}

/** Only the node that ran a task knows it. */
function findOn(core: Core, node: string, upid: string): Task | undefined {
  const task = core.tasks.find(upid);
  return task?.node === node ? task : undefined;
}

function status(call: Call): unknown {
  const upid = text(call.params, 'upid');
  const parsed = checkOwner(call, upid, 'Sys.Audit');
  const task = findOn(call.core, call.node, upid);
  if (task === undefined) throw paramError({ upid: 'no such task' });
  const [user = '', tokenid] = parsed.authId.split('!');
  return {
    upid,
    node: parsed.node,
    pid: parsed.pid,
    pstart: parsed.pstart,
    starttime: parsed.starttime,
    type: parsed.type,
    id: parsed.id,
    user,
    ...(tokenid === undefined ? {} : { tokenid }),
    status: task.running ? 'running' : 'stopped',
    ...(task.running ? {} : { exitstatus: task.exitstatus }),
  };
}

function log(call: Call): Listing {
  const upid = text(call.params, 'upid');
  checkOwner(call, upid, 'Sys.Audit');
  const task = findOn(call.core, call.node, upid);
  const missing = 'unable to open file - No such file or directory';
  const lines = task === undefined ? [missing] : task.log.length === 0 ? ['no content'] : task.log;
  const start = integer(call.params, 'start');
  const limit = call.params['limit'] === undefined ? 50 : integer(call.params, 'limit');
  const numbered = lines.map((line, index) => ({ n: index + 1, t: line }));
  return new Listing(numbered.slice(start, limit === 0 ? undefined : start + limit), lines.length);
}

function list(call: Call): Listing {
  const { core, node, params, who } = call;
  const source = optionalText(params, 'source') ?? 'archive';
  const all = core.access.has(who, `/nodes/${node}`, 'Sys.Audit');
  const statusFilter = optionalText(params, 'statusfilter')?.split(/[,;\s]+/);
  const rows = core.tasks.all
    .filter((task) => task.node === node && !task.vanished)
    .filter((task) => source === 'all' || (source === 'active') === task.running)
    .filter((task) => all || owns(who, task.authId))
    .filter((task) => params['vmid'] === undefined || task.id === text(params, 'vmid'))
    .filter(
      (task) => params['typefilter'] === undefined || task.type === text(params, 'typefilter'),
    )
    .filter((task) => params['since'] === undefined || task.starttime >= integer(params, 'since'))
    .filter((task) => params['until'] === undefined || task.starttime <= integer(params, 'until'))
    .filter((task) => flag(params, 'errors') !== true || isFailure(task))
    .filter((task) => statusFilter === undefined || statusFilter.includes(kind(task)))
    .toReversed()
    .sort((a, b) => Number(b.running) - Number(a.running));
  const start = integer(params, 'start');
  const limit = params['limit'] === undefined ? 50 : integer(params, 'limit');
  return new Listing(rows.slice(start, start + limit).map(row), rows.length);
}

function isFailure(task: Task): boolean {
  return !task.running && kind(task) !== 'ok' && kind(task) !== 'warning';
}

function kind(task: Task): string {
  const exit = task.exitstatus ?? '';
  if (exit === 'OK') return 'ok';
  if (/^WARNINGS: \d+$/.test(exit)) return 'warning';
  return exit === 'unexpected status' ? 'unknown' : 'error';
}

function row(task: Task): Record<string, unknown> {
  const [user = '', tokenid] = task.authId.split('!');
  const base = {
    upid: task.upid,
    node: task.node,
    pid: task.pid,
    pstart: task.pstart,
    starttime: task.starttime,
    type: task.type,
    id: task.id,
  };
  // Active entries carry the unsplit user (20-tasks-active).
  if (task.running) return { ...base, user: task.authId, status: 'RUNNING', saved: '0' };
  return {
    ...base,
    user,
    ...(tokenid === undefined ? {} : { tokenid }),
    endtime: task.endtime,
    status: task.exitstatus,
  };
}
