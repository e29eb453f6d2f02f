import type { Identity } from '../auth.ts';
import { optionalText, type Core, type Endpoint } from '../core.ts';
import { forbidden } from '../errors.ts';
import { BUILTIN_ROLES } from '../privileges.ts';
import { common } from '../schema.ts';

export const accessEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/version',
    schema: {},
    handler: ({ core }) => ({ ...core.cluster.version }),
  },
  {
    method: 'POST',
    path: '/access/ticket',
    allowToken: false,
    handler: () => null,
  },
  {
    method: 'GET',
    path: '/access/permissions',
    schema: { path: common.optionalString, userid: common.optionalString },
    handler: ({ core, params, who }) => {
      const path = optionalText(params, 'path');
      const paths = path === undefined ? core.access.listedPaths() : [path];
      return permissionTable(core, who, paths, path !== undefined);
    },
  },
  {
    method: 'GET',
    path: '/access/users/{userid}/token/{tokenid}',
    // Without Realm or User privileges even the own token is off limits (13-token-self).
    check: ({ core, who }) => {
      if (!core.access.has(who, '/access', 'User.Modify')) throw forbidden();
    },
    handler: () => null,
  },
  {
    method: 'GET',
    path: '/access/roles',
    handler: ({ core }) =>
      [...core.access.roles].map(([roleid, privileges]) => ({
        roleid,
        privs: [...privileges].sort().join(','),
        special: BUILTIN_ROLES.has(roleid) ? 1 : 0,
      })),
  },
  {
    method: 'GET',
    path: '/pools',
    schema: { poolid: common.optionalString, type: common.optionalString },
    handler: ({ core, who, params }) => {
      const wanted = optionalText(params, 'poolid');
      return core.cluster.pools
        .filter((pool) => wanted === undefined || pool.id === wanted)
        .filter((pool) => core.access.has(who, `/pool/${pool.id}`, 'Pool.Audit'))
        .map((pool) => ({
          poolid: pool.id,
          ...(wanted === undefined ? {} : { members: pool.members.map((id) => ({ id })) }),
        }));
    },
  },
  {
    method: 'GET',
    path: '/cluster/sdn/zones',
    schema: {
      type: common.optionalString,
      pending: common.optionalBoolean,
      running: common.optionalBoolean,
    },
    handler: () => [],
  },
];

function permissionTable(
  core: Core,
  who: Identity,
  paths: readonly string[],
  keepEmpty: boolean,
): Record<string, Record<string, number>> {
  const table: Record<string, Record<string, number>> = {};
  for (const path of paths) {
    const held = core.access.privilegesOn(who, path);
    if (held.size > 0 || keepEmpty) table[path] = Object.fromEntries(held);
  }
  return table;
}
