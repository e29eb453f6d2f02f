/** How a connection to pveproxy is opened: TCP and TLS under separate clocks, HTTP/1.1 only. */
import net from 'node:net';
import tls from 'node:tls';
import type { buildConnector } from 'undici';

/** What may differ between two providers, and between two contents of their CA file. */
export interface ConnectSettings {
  /** CA certificates; `null` for the roots of Node and of the system. */
  ca: string[] | null;
  insecureSkipTLSVerify: boolean;
  tcpTimeoutMs: number;
  tlsTimeoutMs: number;
}

/** The connection never came to be, so no request went over it. */
export class ConnectError extends Error {
  readonly stage: 'TCP connect' | 'TLS handshake';
  readonly code: string;

  constructor(stage: ConnectError['stage'], cause: Error, code: string) {
    super(cause.message, { cause });
    this.name = 'ConnectError';
    this.stage = stage;
    this.code = code;
  }
}

/** Opens connections and knows those not yet open, which undici's own close would leave to their timers. */
export interface Connector {
  connect: buildConnector.connector;
  /** Ends attempts still under way, whose requests gave up. */
  abandon(): void;
}

/** Connector for one pool. undici's own has a single timer over TCP and TLS together. */
export function createConnector(settings: ConnectSettings): Connector {
  const context = tls.createSecureContext(
    settings.insecureSkipTLSVerify ? {} : { ca: settings.ca ?? systemRoots() },
  );
  const opening = new Set<net.Socket>();

  const connect: buildConnector.connector = (target, callback) => {
    // An IPv6 host comes in brackets, as in the URL.
    const host = target.hostname.replace(/^\[(.*)\]$/, '$1');
    const tcp = net.connect({ host, port: Number(target.port === '' ? '443' : target.port) });
    tcp.setNoDelay(true);
    opening.add(tcp);
    const fail = (error: ConnectError): void => {
      opening.delete(tcp);
      tcp.destroy();
      callback(error, null);
    };
    phase(tcp, 'TCP connect', 'connect', settings.tcpTimeoutMs, fail, () => {
      const secure = tls.connect({
        socket: tcp,
        secureContext: context,
        rejectUnauthorized: !settings.insecureSkipTLSVerify,
        ALPNProtocols: ['http/1.1'],
        // SNI must be a name; `host` is what the certificate is compared with, addresses included.
        host,
        ...(net.isIP(host) === 0 ? { servername: host } : {}),
      });
      phase(secure, 'TLS handshake', 'secureConnect', settings.tlsTimeoutMs, fail, () => {
        opening.delete(tcp);
        callback(null, secure);
      });
    });
  };
  return {
    connect,
    abandon: () => {
      for (const socket of opening) socket.destroy(new Error('the client was closed'));
    },
  };
}

/**
 * By itself Node trusts the list it was built with, not what an administrator added to the system (specification, Config
 * reference: system roots). The system's are read once in the life of a process; `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
 */
function systemRoots(): string[] {
  return [...tls.getCACertificates('default'), ...tls.getCACertificates('system')];
}

/** Waits for one event of a socket, at most `timeoutMs`; exactly one of the two callbacks runs. */
function phase(
  socket: net.Socket,
  stage: ConnectError['stage'],
  event: 'connect' | 'secureConnect',
  timeoutMs: number,
  fail: (error: ConnectError) => void,
  done: () => void,
): void {
  const settle = (next: () => void): void => {
    clearTimeout(timer);
    socket.off(event, onEvent).off('error', onError).off('close', onClose);
    next();
  };
  const onEvent = (): void => settle(done);
  const onError = (error: Error & { code?: string }): void =>
    settle(() => {
      // A second error of a dead socket must not end the process.
      socket.on('error', () => undefined);
      fail(new ConnectError(stage, error, error.code ?? 'UNKNOWN'));
    });
  const onClose = (): void =>
    settle(() => fail(new ConnectError(stage, new Error('closed by the other side'), 'CLOSED')));
  const timer = setTimeout(() => {
    const text = `no ${stage === 'TCP connect' ? 'connection' : 'TLS handshake'} within ${timeoutMs / 1_000} s`;
    onError(Object.assign(new Error(text), { code: 'TIMEOUT' }));
  }, timeoutMs);
  socket.once(event, onEvent).once('error', onError).once('close', onClose);
}
