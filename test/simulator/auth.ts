import type { Fixture } from './fixture.ts';
import { ApiError, forbidden } from './errors.ts';
import { ALL_PRIVILEGES, BUILTIN_ROLES } from './privileges.ts';

/** Who asks: `user@realm!token`, or `user@realm` for tasks that root started by hand. */
export interface Identity {
  /** `proxy-operator@pve!operator`. */
  authId: string;
  user: string;
  token: string | null;
}

export interface AccessControl {
  /** Throws 401 with `No ticket` or `Authentication failed!`. */
  authenticate(authorization: string | undefined): Identity;
  /** Privilege → propagate flag, for one path (api-facts 5.26). */
  privilegesOn(who: Identity, path: string): ReadonlyMap<string, 0 | 1>;
  has(who: Identity, path: string, ...anyOf: readonly string[]): boolean;
  /** Throws 403 `Permission check failed (<path>, <A|B>)`. */
  require(who: Identity, path: string, ...anyOf: readonly string[]): void;
  /** Paths that an unfiltered `GET /access/permissions` lists: the roots and every ACL path. */
  listedPaths(): readonly string[];
  roles: ReadonlyMap<string, readonly string[]>;
  /** `pveum aclmod`. */
  grant(path: string, principal: string, privileges: readonly string[]): void;
  /** Removes ACLs of a destroyed VM (AccessControl remove_vm_access). */
  removePath(path: string): void;
}

interface Acl {
  path: string;
  principal: string;
  privileges: readonly string[];
  propagate: 0 | 1;
  noAccess: boolean;
}

const ROOTS = ['/', '/access', '/access/groups', '/nodes', '/pool', '/sdn', '/storage', '/vms'];

/** Users, tokens, roles and ACLs of a fixture as PVE::AccessControl evaluates them. */
export function accessControl(
  fixture: Fixture,
  now: () => number,
  pools: readonly { id: string; members: readonly string[] }[] = [],
): AccessControl {
  const roles = new Map(BUILTIN_ROLES);
  for (const role of fixture.roles) roles.set(role.id, role.privileges);
  let acls: Acl[] = fixture.acls.map((acl) => ({
    path: acl.path,
    principal: acl.principal,
    privileges: roles.get(acl.role) ?? [],
    propagate: acl.propagate ? 1 : 0,
    noAccess: acl.role === 'NoAccess',
  }));
  const users = new Map(fixture.users.map((user) => [user.id, user]));

  /** The most specific path with an entry for this principal replaces everything above it. */
  const ofPrincipal = (principal: string, path: string): Map<string, 0 | 1> => {
    let held = new Map<string, 0 | 1>();
    for (const prefix of prefixes(path)) {
      const here = acls.filter(
        (acl) =>
          acl.path === prefix &&
          acl.principal === principal &&
          (acl.propagate === 1 || prefix === path),
      );
      if (here.length === 0) continue;
      held = new Map();
      if (here.some((acl) => acl.noAccess)) continue;
      for (const acl of here) {
        for (const privilege of acl.privileges) held.set(privilege, acl.propagate);
      }
    }
    return held;
  };

  /** Members of a pool have its privileges besides their own (RPCEnvironment permissions). */
  const withPool = (principal: string, path: string): Map<string, 0 | 1> => {
    const held = ofPrincipal(principal, path);
    const member = /^\/(vms|storage)\/([^/]+)$/.exec(path);
    if (member === null) return held;
    const names =
      member[1] === 'vms'
        ? [`qemu/${member[2] ?? ''}`, `lxc/${member[2] ?? ''}`]
        : [`storage/${member[2] ?? ''}`];
    const pool = pools.find(({ members }) => names.some((name) => members.includes(name)));
    if (pool === undefined) return held;
    return new Map([...ofPrincipal(principal, `/pool/${pool.id}`), ...held]);
  };

  const privilegesOn = (who: Identity, path: string): Map<string, 0 | 1> => {
    if (who.authId === 'root@pam') return new Map(ALL_PRIVILEGES.map((name) => [name, 1]));
    const ofUser =
      who.user === 'root@pam'
        ? new Map<string, 0 | 1>(ALL_PRIVILEGES.map((name) => [name, 1]))
        : withPool(who.user, path);
    const token = users.get(who.user)?.tokens.find((entry) => entry.id === who.token);
    if (token === undefined || !token.privsep) return ofUser;
    const ofToken = withPool(who.authId, path);
    return new Map([...ofUser].filter(([privilege]) => ofToken.has(privilege)));
  };

  const has = (who: Identity, path: string, ...anyOf: readonly string[]): boolean => {
    const held = privilegesOn(who, path);
    return anyOf.some((privilege) => held.has(privilege));
  };

  return {
    roles,
    privilegesOn,
    has,
    require: (who, path, ...anyOf) => {
      if (!has(who, path, ...anyOf)) throw forbidden(`${path}, ${anyOf.join('|')}`);
    },
    listedPaths: () => [...new Set([...ROOTS, ...acls.map((acl) => acl.path)])],
    grant: (path, principal, privileges) => {
      acls.push({ path, principal, privileges, propagate: 1, noAccess: false });
    },
    removePath: (path) => {
      acls = acls.filter((acl) => acl.path !== path);
    },
    authenticate: (authorization) => {
      const value = /(?:^|\s|;)PVEAPIToken(?:=| )([^;]*)/.exec(authorization ?? '')?.[1];
      if (value === undefined) throw unauthorized('No ticket');
      const parts = /^(([^\s:/]+@[A-Za-z][A-Za-z0-9._-]+)!([A-Za-z][A-Za-z0-9._-]+))=(.+)$/s.exec(
        percentDecode(value),
      );
      const [, authId, userId, tokenId, secret] = parts ?? [];
      const user = users.get(userId ?? '');
      const token = user?.tokens.find((entry) => entry.id === tokenId);
      const valid =
        authId !== undefined &&
        userId !== undefined &&
        tokenId !== undefined &&
        user !== undefined &&
        token !== undefined &&
        user.enabled &&
        token.secret === secret &&
        !isExpired(user.expire, now()) &&
        !isExpired(token.expire, now());
      if (!valid) throw unauthorized('Authentication failed!');
      return { authId, user: userId, token: tokenId };
    },
  };
}

function unauthorized(reason: string): ApiError {
  return new ApiError(401, reason, { body: 'none' });
}

function isExpired(expire: number, nowMs: number): boolean {
  return expire !== 0 && expire * 1000 <= nowMs;
}

function percentDecode(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_match, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function prefixes(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  const all = ['/'];
  for (let length = 1; length <= parts.length; length += 1) {
    all.push(`/${parts.slice(0, length).join('/')}`);
  }
  return all;
}
