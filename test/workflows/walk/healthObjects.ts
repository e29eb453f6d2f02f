/** A Kubernetes client that keeps ProviderHealths itself and passes everything else on: FakeKubernetes knows none. */
import { randomUUID } from 'node:crypto';
import type {
  KubernetesAnswer,
  KubernetesClient,
  KubernetesRequest,
} from '../../../activities/kubernetes/client.ts';
import { asJson, mergePatch, type Json } from '../../support/mergePatch.ts';

interface Stored {
  metadata: { name: string; uid: string; resourceVersion: string };
  status: Json;
}

export interface HealthObjects {
  client: KubernetesClient;
  statusOf(provider: string): Json;
}

const collection = '/apis/egress-proxies.io/v1alpha1/providerhealths';

export function withHealthObjects(inner: KubernetesClient): HealthObjects {
  const objects = new Map<string, Stored>();
  let version = 0;

  function store(name: string, uid: string, status: Json): KubernetesAnswer {
    version += 1;
    const body = { metadata: { name, uid, resourceVersion: String(version) }, status };
    objects.set(name, body);
    return { status: 200, body: structuredClone(body) };
  }

  function answer({ method, path, body }: KubernetesRequest): KubernetesAnswer {
    const name = path.slice(collection.length + 1).replace(/\/status$/, '');
    const sent = asJson(body);
    if (name === '' && method === 'GET') {
      return { status: 200, body: structuredClone({ items: [...objects.values()] }) };
    }
    if (method === 'POST') {
      const wanted = String(asJson(sent['metadata'])['name']);
      if (objects.has(wanted)) return { status: 409, body: 'already exists' };
      return { ...store(wanted, randomUUID(), {}), status: 201 };
    }
    const found = objects.get(name);
    if (found === undefined) return { status: 404, body: 'not found' };
    if (method === 'GET') return { status: 200, body: structuredClone(found) };
    if (method === 'DELETE') {
      objects.delete(name);
      return { status: 200, body: {} };
    }
    const { resourceVersion } = asJson(sent['metadata']);
    const { metadata, status } = found;
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
      return { status: 409, body: 'the object has been modified' };
    }
    return store(name, metadata.uid, asJson(mergePatch(status, sent['status'])));
  }

  return {
    client: {
      send: async (request) =>
        request.path.startsWith(collection) ? answer(request) : inner.send(request),
      stream: (path, query, signal) => inner.stream(path, query, signal),
      close: () => inner.close(),
    },
    statusOf: (provider) => objects.get(provider)?.status ?? {},
  };
}
