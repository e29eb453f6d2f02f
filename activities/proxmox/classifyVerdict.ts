/** Shared by the classifiers: what was tried, what it means, and the error that says both. */
import type { ErrorClass, FailureFacts } from '../../workflows/contract/errors.ts';
import { ProviderError } from '../providerError.ts';

/** What was tried, for message and facts. */
export interface Attempt {
  provider: string;
  /** Seam method, for example `clone`. */
  call: string;
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** In words, with every object: «clone template 9001 to VM 100123 on pve1». */
  what: string;
  node?: string;
  vmid?: number;
  storage?: string;
  upid?: string;
}

/** How the connection is configured, for remedies. */
export interface Peer {
  /** Host and port of the provider's URL. */
  address: string;
  tokenId: string | null;
}

/** Class and facts, before the attempt's own facts are added. */
export interface Verdict {
  errorClass: ErrorClass;
  facts: Omit<FailureFacts, 'provider'>;
}

/** No answer: Transient, and for a write nobody knows what it did. */
export function outOfReach(
  reason: 'Unreachable' | 'Timeout',
  tried: Attempt,
  remedy?: string,
): Verdict {
  return {
    errorClass: 'Transient',
    facts: {
      reason,
      scope: 'provider',
      outcomeUnknown: tried.method !== 'GET',
      ...(remedy === undefined ? {} : { remedy }),
    },
  };
}

/** The verdict with another answer to «may the write have been carried out?». */
export function withOutcome(verdict: Verdict, outcomeUnknown: boolean): Verdict {
  return { errorClass: verdict.errorClass, facts: { ...verdict.facts, outcomeUnknown } };
}

/** Proxmox's text on one line, cut at 500 characters. */
export function shorten(text: string): string {
  const line = text.replaceAll(/\s*\n\s*/g, ' ').trim();
  return line.length <= 500 ? line : `${line.slice(0, 500)}…`;
}

/** The error: message «what (provider p): what came; remedy», facts of attempt and verdict. */
export function failure(
  tried: Attempt,
  came: string,
  verdict: Verdict,
  cause?: unknown,
): ProviderError {
  const { provider, node, vmid, upid, storage } = tried;
  const { outcomeUnknown, ...told } = verdict.facts;
  const remedy = told.remedy === undefined ? '' : `; ${told.remedy}`;
  return new ProviderError(
    verdict.errorClass,
    `${tried.what} (provider ${provider}): ${came}${remedy}`,
    {
      provider,
      ...(node === undefined ? {} : { node }),
      ...(vmid === undefined ? {} : { vmid }),
      ...(upid === undefined ? {} : { upid }),
      ...(storage === undefined ? {} : { storage }),
      ...told,
      ...(outcomeUnknown === true ? { outcomeUnknown } : {}),
    },
    cause,
  );
}
