/** Reading Secrets. What is in them is never logged, and no message quotes it. */
import { z } from 'zod';
import { transient, type ProviderError } from '../providerError.ts';
import type { KubernetesAnswer, KubernetesClient } from './client.ts';
import { refused, unanswered, type Attempt } from './refusal.ts';

/** Names of deploy/base/rbac, for the command that lets the operator read the Secrets of a namespace. */
const secretsRole = 'egress-proxies-operator-secrets';
const workerAccount = 'egress-proxies-operator-system:worker';

const secretBody = z.object({ data: z.record(z.string(), z.string()).nullish() });

/**
 * Values of these keys of one Secret, in the order asked for. Throws Transient `CloudInitUnavailable` when the Secret or a
 * key is missing or may not be read, `KubernetesUnavailable` for every other failure.
 */
export async function readSecretKeys(
  client: KubernetesClient,
  namespace: string,
  name: string,
  keys: readonly string[],
): Promise<Buffer[]> {
  const answer = await ask(client, namespace, name, keys);
  const parsed = secretBody.safeParse(answer.body);
  const data = (parsed.success ? parsed.data.data : undefined) ?? {};
  return keys.map((key) => {
    const value = data[key];
    if (value !== undefined) return Buffer.from(value, 'base64');
    throw cloudInitUnavailable(
      `Secret ${namespace}/${name} has no key ${key}`,
      'Add the key to the Secret.',
    );
  });
}

/** `username` and `password` of one Secret, in one read: two could meet a rotation in between. Throws as `readSecretKeys`. */
export async function readCredentials(
  client: KubernetesClient,
  namespace: string,
  name: string,
): Promise<{ username: string; password: string }> {
  const values = await readSecretKeys(client, namespace, name, ['username', 'password']);
  const [username = '', password = ''] = values.map((value) => value.toString('utf8'));
  return { username, password };
}

async function ask(
  client: KubernetesClient,
  namespace: string,
  name: string,
  keys: readonly string[],
): Promise<KubernetesAnswer> {
  const object = `Secret ${namespace}/${name}`;
  const attempt: Attempt = { verb: 'get', object, rule: 'secrets: get' };
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
  let answer: KubernetesAnswer;
  try {
    answer = await client.send({ method: 'GET', path });
  } catch (error) {
    throw unanswered(attempt, error);
  }
  if (answer.status === 404) {
    throw cloudInitUnavailable(
      `${object} does not exist`,
      `Create it with the key ${keys.join(' and the key ')}.`,
    );
  }
  // Secrets are granted namespace by namespace (deploy/base/rbac/secrets.yaml): the Proxy waits as for a missing one.
  if (answer.status === 403) {
    throw cloudInitUnavailable(
      `${object} may not be read by the operator`,
      `Allow it: kubectl create rolebinding ${secretsRole} --namespace=${namespace} --clusterrole=${secretsRole} --serviceaccount=${workerAccount}`,
    );
  }
  if (answer.status !== 200) throw refused(attempt, answer);
  return answer;
}

function cloudInitUnavailable(problem: string, remedy: string): ProviderError {
  return transient('CloudInitUnavailable', `${problem}. ${remedy}`, { remedy });
}
