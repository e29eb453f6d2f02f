/** The one way to a Proxy's cloud-init content, for its hash and for the seed. */
import type { Proxy } from '../../api/proxy.ts';
import { maxCloudInitBytes } from '../../api/proxySpec.ts';
import { ProviderError } from '../providerError.ts';
import type { ProxyRecords } from './records.ts';

/**
 * User-data byte for byte, inline or from the Secret; `null` for External. Never to be logged or returned by a step.
 * Throws Transient `CloudInitUnavailable` when Secret or key are missing, empty or too large.
 */
export async function readCloudInit(
  records: ProxyRecords,
  proxy: Proxy,
): Promise<Uint8Array | null> {
  const { mode, cloudInit, cloudInitFrom } = proxy.spec;
  if (mode === 'External') return null;
  if (cloudInit !== undefined) return Buffer.from(cloudInit, 'utf8');
  const { namespace, name } = proxy.metadata;
  if (cloudInitFrom === undefined) {
    throw unavailable(`Proxy ${namespace}/${name} has neither cloudInit nor cloudInitFrom`);
  }
  const { name: secret, key } = cloudInitFrom.secretKeyRef;
  const content = await records.secretKey(namespace, secret, key);
  if (content.byteLength === 0)
    throw unavailable(`Secret ${namespace}/${secret} has an empty ${key}`);
  if (content.byteLength > maxCloudInitBytes) {
    throw unavailable(
      `Key ${key} of Secret ${namespace}/${secret} has ${content.byteLength} bytes, more than ${maxCloudInitBytes}`,
    );
  }
  return content;
}

function unavailable(problem: string): ProviderError {
  return new ProviderError('Transient', `${problem}; cloud-init cannot be read.`, {
    reason: 'CloudInitUnavailable',
    scope: 'proxy',
  });
}
