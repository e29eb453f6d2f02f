/** Who this installation is when nobody says so: the UID of the namespace kube-system (design §3). */
import { z } from 'zod';
import type { KubernetesClient } from './client.ts';
import { refused, unanswered } from './failure.ts';

const namespaceBody = z.object({ metadata: z.object({ uid: z.string().min(1) }) });
const attempt = {
  verb: 'get',
  object: 'the namespace kube-system, whose UID names this installation',
  rule: 'namespaces (kube-system): get',
} as const;

/** Throws Transient `KubernetesUnavailable`; the remedy beside RBAC is the flag `--installation-id`. */
export async function readInstallationId(client: KubernetesClient): Promise<string> {
  const answer = await client
    .send({ method: 'GET', path: '/api/v1/namespaces/kube-system' })
    .catch((error: unknown) => {
      throw unanswered(attempt, error);
    });
  const parsed = namespaceBody.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success) throw refused(attempt, answer);
  return parsed.data.metadata.uid;
}
