/** A namespace that is deleted with a Proxy in it, in the order that could be worst. */
import type { SystemStack } from './stack.ts';

const operator = 'egress-proxies-operator-system';

/** A namespace with one Secret, and a role of its own that lets the worker read it. */
export async function makeNamespace(
  stack: SystemStack,
  name: string,
  secret: { name: string; data: Record<string, string> },
): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const metadata = { name: 'read-secrets', namespace: name };
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    {
      apiVersion: `${apiGroup}/v1`,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
    },
    {
      apiVersion: `${apiGroup}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup, kind: 'Role', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', name: 'worker', namespace: operator }],
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret.name, namespace: name },
      stringData: secret.data,
    },
  ];
  await stack.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

/**
 * `kubectl delete namespace` as far as it gets before it comes to the Proxies, when it takes all else first: it is terminating,
 * so that nothing can be made in it any more, and Secrets and roles are gone. What the controller manager does is done by hand.
 */
export async function deleteAllButProxies(stack: SystemStack, namespace: string): Promise<void> {
  await stack.kubectl('delete', 'namespace', namespace, '--wait=false');
  await stack.kubectl('delete', 'secrets,rolebindings,roles', '--all', `--namespace=${namespace}`);
}
