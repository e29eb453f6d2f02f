/** Temporal's own standard variables (`TEMPORAL_*`), as its command line reads them. */
import { readFileSync } from 'node:fs';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { processEnvironment, UsageError } from './env.ts';

type TLSConfig = Exclude<NativeConnectionOptions['tls'], boolean | null | undefined>;

export interface TemporalSettings {
  /** `host:port`. */
  address: string;
  namespace: string;
  apiKey: string | null;
  tls: TLSConfig | null;
}

type Env = Readonly<NodeJS.ProcessEnv>;

/** Where no variable says otherwise; the address is that of Temporal's own tools. */
export const temporalDefaults = { address: 'localhost:7233', namespace: 'egress-proxies' };

/**
 * Settings from `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY` and `TEMPORAL_TLS*`. TLS is on with an API key,
 * with any certificate, or with `TEMPORAL_TLS=true`. Certificates are read once: a rotated one needs a restart.
 * @throws UsageError when a value or a file cannot be used.
 */
export function readTemporalSettings(env: Env = processEnvironment): TemporalSettings {
  const apiKey = env['TEMPORAL_API_KEY'] || null;
  return {
    address: env['TEMPORAL_ADDRESS'] || temporalDefaults.address,
    namespace: env['TEMPORAL_NAMESPACE'] || temporalDefaults.namespace,
    apiKey,
    tls: readTls(env, apiKey !== null),
  };
}

function readTls(env: Env, impliedByKey: boolean): TLSConfig | null {
  const wanted = env['TEMPORAL_TLS'] || '';
  if (!/^(true|false|1|0|)$/i.test(wanted)) {
    throw new UsageError(`TEMPORAL_TLS is "${wanted}" but must be true or false.`);
  }
  const crt = material(env, 'TEMPORAL_TLS_CLIENT_CERT');
  const key = material(env, 'TEMPORAL_TLS_CLIENT_KEY');
  const ca = material(env, 'TEMPORAL_TLS_SERVER_CA_CERT');
  if ((crt === null) !== (key === null)) {
    throw new UsageError(
      'A client certificate for Temporal needs its key and the other way round: set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH.',
    );
  }
  const serverName = env['TEMPORAL_TLS_SERVER_NAME'] || null;
  const given = impliedByKey || crt !== null || ca !== null || serverName !== null;
  const on = wanted === '' ? given : /^(true|1)$/i.test(wanted);
  if (!on) return null;
  return {
    ...(serverName === null ? {} : { serverNameOverride: serverName }),
    ...(ca === null ? {} : { serverRootCACertificate: ca }),
    ...(crt === null || key === null ? {} : { clientCertPair: { crt, key } }),
  };
}

/** `<name>_PATH` names a file, `<name>_DATA` is the PEM itself. */
function material(env: Env, name: string): Uint8Array | null {
  const data = env[`${name}_DATA`];
  if (data) return Buffer.from(data);
  const path = env[`${name}_PATH`];
  if (!path) return null;
  try {
    return readFileSync(path);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${name}_PATH cannot be read: ${text}.`);
  }
}
