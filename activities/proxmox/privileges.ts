/** Which `pveum` line mends a refused permission. Roles are those of the installation guide. */
import type { FailureFacts } from '../../workflows/contract/errors.ts';

/** Privileges of the operator's two roles (specification, Proxmox prerequisites). */
const operatorPrivileges: ReadonlySet<string> = new Set([
  'VM.Allocate',
  'VM.Clone',
  'VM.Audit',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Memory',
  'VM.Config.Disk',
  'VM.Config.Network',
  'VM.Config.Options',
  'VM.PowerMgmt',
  'VM.GuestAgent.Audit',
  'Datastore.Audit',
  'Datastore.AllocateSpace',
  'Datastore.AllocateTemplate',
  'Sys.Audit',
  'SDN.Use',
]);

/** Verdict of «Permission check failed (path, privileges)»: who must be given what, as one command line. */
export function forbidden(
  tried: { call: string },
  text: string,
  tokenId: string | null,
): { errorClass: 'Permanent'; facts: Omit<FailureFacts, 'provider'> } {
  const remedy = grant(tried.call, text, tokenId);
  return {
    errorClass: 'Permanent',
    facts: { reason: 'Forbidden', scope: 'provider', ...(remedy === null ? {} : { remedy }) },
  };
}

function grant(call: string, text: string, tokenId: string | null): string | null {
  const refused = /^Permission check failed \((\/[^,)]*), ([^)]+)\)/.exec(text);
  // POST clone without VM.Allocate tells neither path nor privilege (pve/README 6).
  const hidden = call === 'clone' && /^Permission check failed\s*$/.test(text);
  const path = refused?.[1] ?? (hidden ? '/' : null);
  const anyOf = refused?.[2]?.split('|') ?? (hidden ? ['VM.Allocate'] : []);
  const first = anyOf[0];
  if (path === null || first === undefined) return null;
  const usual = anyOf.filter((privilege) => operatorPrivileges.has(privilege));
  const privileges = (usual.length > 0 ? usual : [first]).join(' ');
  const user = tokenId?.split('!')[0] ?? '<user>@<realm>';
  // A token with privilege separation has only what both it and its user are granted (api-facts 1.4).
  const token = tokenId === null ? '' : ` --tokens '${tokenId}'`;
  // An ACL on a deeper path replaces what is inherited (pve/README 41), so a role is only ever extended where the
  // guide puts it: the seed storage has its own, everything else is granted on `/`.
  const seeds = path.startsWith('/storage/') && (seedCalls.has(call) || anyOf.every(isSeedOnly));
  const role = seeds ? 'ProxyOperatorSeeds' : 'ProxyOperator';
  return (
    `pveum role modify ${role} --append 1 --privs "${privileges}" && ` +
    `pveum acl modify ${seeds ? path : '/'} --users ${user}${token} --roles ${role}`
  );
}

const seedCalls: ReadonlySet<string> = new Set([
  'uploadIso',
  'listIsos',
  'deleteVolume',
  'getStorageStatus',
]);

function isSeedOnly(privilege: string): boolean {
  return privilege === 'Datastore.Allocate' || privilege === 'Datastore.AllocateTemplate';
}
