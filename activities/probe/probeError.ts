/** What a probe without an answer says about the proxy. Pure. */
import type { ProbeReason } from '../../workflows/contract/messages.ts';
import type { ProbeOutcome } from './probe.ts';

export interface ProbeErrorContext {
  ip: string;
  port: number;
  /** Host of the URL asked for. */
  host: string;
  timeoutMs: number;
  /** The TCP connection to the proxy came about. */
  reached: boolean;
  /** The proxy opened a tunnel to the host. */
  tunnelled: boolean;
}

const reasonsByCode: Readonly<Record<string, ProbeReason>> = {
  ECONNREFUSED: 'ConnectionRefused',
  ECONNRESET: 'ConnectionReset',
  EPIPE: 'ConnectionReset',
  UND_ERR_SOCKET: 'ConnectionReset',
  ETIMEDOUT: 'ProbeTimeout',
  UND_ERR_CONNECT_TIMEOUT: 'ProbeTimeout',
  UND_ERR_HEADERS_TIMEOUT: 'ProbeTimeout',
  UND_ERR_BODY_TIMEOUT: 'ProbeTimeout',
};
/** Node's and OpenSSL's names for a certificate or handshake that does not do. */
const tlsCode =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_CA)/;

/** The outcome of a probe that failed without an HTTP status. */
export function describeProbeError(error: unknown, context: ProbeErrorContext): ProbeOutcome {
  const { ip, port, host, timeoutMs, reached, tunnelled } = context;
  const proxy = `the proxy at ${ip}:${port}`;
  const reason = reasonOf(error);
  switch (reason) {
    case 'ConnectionRefused':
      return failed(reason, `${proxy} refused the connection; nothing listens there`, false);
    case 'ConnectionReset':
      return tunnelled
        ? failed(reason, `the tunnel to ${host} through ${ip}:${port} was cut`, true)
        : failed(reason, `${proxy} cut the connection without an answer`, false);
    case 'ProbeTimeout':
      return reached
        ? failed(
            reason,
            `no answer of ${host} through ${ip}:${port} within ${timeoutMs / 1_000} s`,
            true,
          )
        : failed(reason, `no connection to ${proxy} within ${timeoutMs / 1_000} s`, false);
    case 'TlsFailed':
      return failed(
        reason,
        `TLS with ${host} through ${ip}:${port} failed: ${textOf(error)}`,
        true,
      );
    case 'ProbeFailed':
      return failed(reason, failureText(error, context), tunnelled);
    case 'ProbeSucceeded':
    case 'ProxyAuthenticationRequired':
    case 'UnexpectedStatus':
      return failed('ProbeFailed', failureText(error, context), tunnelled);
  }
  return reason satisfies never;
}

function failed(reason: ProbeReason, message: string, pastProxy: boolean): ProbeOutcome {
  return { healthy: false, reason, message, pastProxy };
}

function reasonOf(error: unknown): ProbeReason {
  if (!(error instanceof Error)) return 'ProbeFailed';
  if (error.name === 'TimeoutError') return 'ProbeTimeout';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (tlsCode.test(code)) return 'TlsFailed';
  return reasonsByCode[code] ?? 'ProbeFailed';
}

function failureText(error: unknown, { ip, port, host, tunnelled }: ProbeErrorContext): string {
  if (!isHttpParserError(error)) return `the probe of ${ip}:${port} failed: ${textOf(error)}`;
  const who = tunnelled ? `${host} through ${ip}:${port}` : `what listens at ${ip}:${port}`;
  return `${who} does not speak HTTP: ${textOf(error)}`;
}

function isHttpParserError(error: unknown): boolean {
  return error instanceof Error && error.name === 'HTTPParserError';
}

/**
 * The words of an error that belong into a status. OpenSSL's message begins with a number of the thread and ends in a file of
 * its source; `reason` has its words alone. Node's advice how to start Node is for somebody else.
 */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('reason' in error && typeof error.reason === 'string') return error.reason;
  return error.message.replace(/; if the root CA is installed locally.*$/s, '').trim();
}
