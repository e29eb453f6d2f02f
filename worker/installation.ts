/** Which installation this is: the mark of its VMs, so that two never touch each other's (design §3). */
import { z } from 'zod';
import type { Installation } from '../activities/deps.ts';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { installationHex } from '../activities/vm/identity.ts';

const namespaceBody = z.object({ metadata: z.object({ uid: z.string().min(1) }) });

/** The configured id, else the UID of the namespace kube-system. Throws one sentence when that cannot be read. */
export async function findInstallation(
  configured: string,
  also: readonly string[],
  kubernetes: KubernetesClient,
): Promise<Installation> {
  const id = configured === '' ? await clusterId(kubernetes) : configured;
  return { id, hex: installationHex(id), also };
}

async function clusterId(kubernetes: KubernetesClient): Promise<string> {
  const answer = await kubernetes.send({ method: 'GET', path: '/api/v1/namespaces/kube-system' });
  const body = namespaceBody.safeParse(answer.body);
  if (answer.status === 200 && body.success) return body.data.metadata.uid;
  throw new Error(
    `The namespace kube-system cannot be read (status ${answer.status}), and its UID is the installation's identity: allow the worker to get it, or set --installation-id.`,
  );
}
