/** Class of a request that got no answer of Proxmox's API, or none that can be read. */
import { temporalSilenceMs } from '../../workflows/contract/budgets.ts';
import type { ProviderError } from '../providerError.ts';
import { ConnectError } from './connect.ts';
import { failure, outOfReach, withOutcome } from './classifyVerdict.ts';
import type { Attempt, Peer, Verdict } from './classifyVerdict.ts';

/** The request bound ran out. */
export class BoundExceeded extends Error {
  constructor(seconds: number) {
    super(`no complete answer within ${seconds} s`);
    this.name = 'BoundExceeded';
  }
}

/** Class of an answer that is none: 200 with something that is not what the API sends. */
export function classifyUnreadable(
  tried: Attempt,
  problem: string,
  status: number,
  cause?: unknown,
): ProviderError {
  const facts = { reason: 'ApiError', scope: 'provider', httpStatus: status } as const;
  const verdict: Verdict = {
    errorClass: 'Transient',
    facts: { ...facts, outcomeUnknown: tried.method !== 'GET' },
  };
  return failure(tried, problem, verdict, cause);
}

/** Class of a request that ended without an answer. Codes: stack-facts D3, checked by the TLS tests. */
export function classifyTransport(tried: Attempt, error: unknown, peer: Peer): ProviderError {
  const text = error instanceof Error ? error.message : 'unknown error';
  if (error instanceof BoundExceeded) {
    return failure(tried, text, outOfReach('Timeout', tried), error);
  }
  if (error instanceof ConnectError) return classifyConnect(tried, error, peer);
  const remedy =
    tried.call === 'uploadIso'
      ? 'a body over 512 KiB is also cut off when the token lacks Datastore.AllocateTemplate on the storage'
      : undefined;
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  const verdict = outOfReach('Unreachable', tried, remedy);
  return failure(tried, `the connection to ${peer.address} broke: ${text}${code}`, verdict, error);
}

/** A write that would have had to be cut off at the end of its attempt, so it never left. */
export function tooLateToWrite(tried: Attempt, leftMs: number, boundMs: number): ProviderError {
  const left = Math.max(0, Math.floor(leftMs / 1_000));
  const text = `nothing was sent: the attempt ends in ${left} s and the request may take ${boundMs / 1_000} s`;
  // A fresh attempt has minutes; one that is over at its start was timed by another clock.
  const facts = { reason: 'Timeout', scope: 'provider', outcomeUnknown: false } as const;
  const remedy = "when this repeats, compare this worker's clock with that of Temporal's server";
  return failure(tried, text, {
    errorClass: 'Transient',
    facts: leftMs < 0 ? { ...facts, remedy } : facts,
  });
}

/** The attempt may have been given up without knowing it, so its write stays where it is. */
export function unansweredByTemporal(tried: Attempt): ProviderError {
  const seconds = temporalSilenceMs / 1_000;
  const text = `nothing was sent: Temporal has not answered this attempt for ${seconds} s, so another one may be at work`;
  return failure(tried, text, {
    errorClass: 'Transient',
    facts: { reason: 'Timeout', scope: 'provider', outcomeUnknown: false },
  });
}

/** No connection of the provider became free in time; nothing was sent. */
export function noFreeSlot(tried: Attempt, seconds: number): ProviderError {
  const text = `nothing was sent: all connections to the provider were busy for ${seconds} s`;
  return failure(tried, text, {
    errorClass: 'Transient',
    facts: { reason: 'Timeout', scope: 'provider', outcomeUnknown: false },
  });
}

/** Certificate trouble (stack-facts D3): trying again cannot help. Everything else of TLS is the network's. */
const certificateCodes: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
  'CERT_REVOKED',
  'CERT_REJECTED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_CHAIN_TOO_LONG',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'HOSTNAME_MISMATCH',
]);

function classifyConnect(tried: Attempt, error: ConnectError, peer: Peer): ProviderError {
  const { code } = error;
  const certificate = certificateCodes.has(code) || code.startsWith('ERR_TLS_CERT_');
  if (!certificate) {
    const remedy =
      code === 'ERR_SSL_WRONG_VERSION_NUMBER'
        ? 'the port does not speak TLS'
        : 'check that the host is up and pveproxy runs there, and routes and firewalls on the way';
    const verdict = withOutcome(outOfReach('Unreachable', tried, remedy), false);
    const text = `${error.stage} to ${peer.address} failed: ${error.message} (${code})`;
    return failure(tried, text, verdict, error);
  }
  const remedy = code.endsWith('ALTNAME_INVALID')
    ? 'use a host of that list in url, or give the node a certificate that names it'
    : code.startsWith('CERT_HAS') || code.startsWith('CERT_NOT')
      ? "renew the node's certificate (pvecm updatecerts --force), and check the clocks"
      : "caFile must hold the CA that signed it, usually the cluster's /etc/pve/pve-root-ca.pem";
  // Node adds advice for people who started it by hand.
  const said = error.message.replace(/; if the root CA is installed locally.*$/s, '');
  const text = `the TLS certificate of ${peer.address} was not accepted: ${said} (${code})`;
  const facts = { reason: 'CertificateInvalid', scope: 'provider', remedy } as const;
  return failure(tried, text, { errorClass: 'Permanent', facts }, error);
}
