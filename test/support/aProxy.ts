/** A Proxy as parsed from Kubernetes; state only what matters. */
import { parseProxy } from '../../api/proxy.ts';
import type { Proxy } from '../../api/proxy.ts';

type Json = Record<string, unknown>;

/** Managed, generation 1, no status, UID from the name unless given. */
export function aProxy(fields: { metadata?: Json; spec?: Json; status?: Json } = {}): Proxy {
  return parseProxy({
    metadata: {
      name: 'p1',
      namespace: 'egress',
      uid: '11111111-1111-4111-8111-111111111111',
      generation: 1,
      resourceVersion: '1',
      ...fields.metadata,
    },
    spec: {
      provider: 'home',
      placement: { machineType: 'small', image: 'debian-13' },
      cloudInit: '#cloud-config\n',
      ...fields.spec,
    },
    status: fields.status,
  });
}
