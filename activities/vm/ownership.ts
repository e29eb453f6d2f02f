/** Whose VM is it? The one table behind every adoption and every destruction (design §3). Pure. */
import { installationHex, parseVmName, type VmNameParts } from './identity.ts';

/** Who asks: one VM name of one Proxy, in one installation. */
export interface Claim {
  vmName: string;
  uid: string;
  installationId: string;
  /** Ids of installations whose VMs are adopted (`--also-installation`). */
  also: readonly string[];
  /** A mark without UID is believed only on VMIDs of this range. */
  vmidRange: { min: number; max: number };
}

/** What was read of a VM. `name` is the `name` in its config, never a row's: that one may be a predecessor's. */
export interface SeenIdentity {
  vmid: number;
  type: 'qemu' | 'lxc';
  template: boolean;
  name: string | null;
  mark: { uid: string; installation: string | null } | null;
}

export type Ownership =
  | { kind: 'ours' }
  /** A VM of somebody else, or of another spec of this Proxy: the VMID is taken, nothing more. */
  | { kind: 'foreign' }
  /** Not told yet, or never: a clone under way, or what an interrupted clone or destroy left. */
  | { kind: 'nameless' }
  /** Our name, and no mark. */
  | { kind: 'unmarked' }
  /** Our name, and a mark with another UID (or none, outside the range). */
  | { kind: 'otherUid'; uid: string }
  /** This Proxy's VM, made by another installation of the operator. */
  | { kind: 'otherInstallation'; installation: string };

/** The verdict on one VM. */
export function ownership(seen: SeenIdentity, claim: Claim): Ownership {
  if (seen.type !== 'qemu' || seen.template) return { kind: 'foreign' };
  if (seen.name === null) return { kind: 'nameless' };
  return seen.name === claim.vmName
    ? underOurName(seen, claim)
    : underOtherName(seen, seen.name, claim);
}

function underOurName({ vmid, mark }: SeenIdentity, claim: Claim): Ownership {
  if (mark === null) return { kind: 'unmarked' };
  const { min, max } = claim.vmidRange;
  const believed = mark.uid === '' && vmid >= min && vmid <= max;
  if (!believed && !sameUid(mark.uid, claim.uid)) return { kind: 'otherUid', uid: mark.uid };
  const { installation } = mark;
  if (installation === null || isOurs(installation, claim)) return { kind: 'ours' };
  return { kind: 'otherInstallation', installation };
}

/** A mark is believed only together with a name it agrees with: clones and restores inherit marks. */
function underOtherName({ mark }: SeenIdentity, name: string, claim: Claim): Ownership {
  const parts = parseVmName(name);
  const claimed = parseVmName(claim.vmName);
  const installation = mark?.installation ?? null;
  if (parts === null || claimed === null || mark === null || installation === null) {
    return { kind: 'foreign' };
  }
  if (!sameUid(mark.uid, claim.uid) || parts.uidPrefix !== claimed.uidPrefix) {
    return { kind: 'foreign' };
  }
  if (installation === claim.installationId) return underOurMark(parts, claimed, claim);
  if (parts.installationHex !== installationHex(installation)) return { kind: 'foreign' };
  if (!claim.also.includes(installation)) return { kind: 'otherInstallation', installation };
  return ofSpec(parts, claimed);
}

/**
 * Our mark under another name: a VM of this Proxy for another spec, or one that was taken over, which keeps the name
 * another installation gave it. Not told any more that its maker is taken over, we could only make a second VM.
 */
function underOurMark(parts: VmNameParts, claimed: VmNameParts, claim: Claim): Ownership {
  const { installationHex: hex } = parts;
  if (hex === installationHex(claim.installationId)) return { kind: 'foreign' };
  if (claim.also.some((id) => installationHex(id) === hex)) return ofSpec(parts, claimed);
  return { kind: 'otherInstallation', installation: `<the one whose SHA-256 begins with ${hex}>` };
}

/** An adopted VM's name differs from the one we would give it in the installation's six digits only. */
function ofSpec(parts: VmNameParts, claimed: VmNameParts): Ownership {
  return parts.specPrefix === claimed.specPrefix ? { kind: 'ours' } : { kind: 'foreign' };
}

function isOurs(installation: string, claim: Claim): boolean {
  return installation === claim.installationId || claim.also.includes(installation);
}

function sameUid(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}
