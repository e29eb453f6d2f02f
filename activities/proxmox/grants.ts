/** Which `pveum` lines give the token what it lacks. Roles are those of the installation guide. */
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import { operatorPrivileges, type Need } from './privileges.ts';

/** The command lines that grant what is missing: one for each of the two roles. */
export function grantMissing(
  missing: readonly Need[],
  isoStorage: string,
  tokenId: string | null,
): string {
  const seeds = `/storage/${isoStorage}`;
  const lines = [
    grantLine(
      'ProxyOperator',
      '/',
      missing.filter(({ path }) => path !== seeds),
      tokenId,
    ),
    grantLine(
      'ProxyOperatorSeeds',
      seeds,
      missing.filter(({ path }) => path === seeds),
      tokenId,
    ),
  ];
  return lines.filter((line) => line !== null).join('; ');
}

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
  const usual = anyOf.filter((privilege) => operatorPrivileges.includes(privilege));
  const needs = (usual.length > 0 ? usual : [first]).map((one) => ({ path, anyOf: [one] }));
  // An ACL on a deeper path replaces what is inherited (pve/README 41), so a role is only ever extended where the
  // guide puts it: the seed storage has its own, everything else is granted on `/`.
  const seeds = path.startsWith('/storage/') && (seedCalls.has(call) || anyOf.every(isSeedOnly));
  return seeds
    ? grantLine('ProxyOperatorSeeds', path, needs, tokenId)
    : grantLine('ProxyOperator', '/', needs, tokenId);
}

/** `null` when nothing is to be granted. Of privileges that will do, the first is. */
function grantLine(
  role: string,
  path: string,
  needs: readonly Need[],
  tokenId: string | null,
): string | null {
  const privileges = [...new Set(needs.flatMap(({ anyOf }) => anyOf[0] ?? []))];
  if (privileges.length === 0) return null;
  const user = tokenId?.split('!')[0] ?? '<user>@<realm>';
  // A token with privilege separation has only what both it and its user are granted (api-facts 1.4).
  const token = tokenId === null ? '' : ` --tokens '${tokenId}'`;
  return (
    `pveum role modify ${role} --append 1 --privs "${privileges.join(' ')}" && ` +
    `pveum acl modify ${path} --users ${user}${token} --roles ${role}`
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
