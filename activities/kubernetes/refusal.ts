/** The one place that turns an answer or a network failure of Kubernetes into a `ProviderError`. */
import { z } from 'zod';
import type { Reason } from '../../workflows/contract/errors.ts';
import { ProviderError } from '../providerError.ts';
import type { KubernetesAnswer } from './client.ts';

/** What was tried, in words that name the object: `patch` and `status of Proxy egress/p1`. */
export interface Attempt {
  verb: 'get' | 'list' | 'create' | 'patch' | 'delete';
  object: string;
  /** Rule the role must hold, for example `proxies/status: patch`. */
  rule: string;
}

const statusBody = z.object({ message: z.string().optional(), reason: z.string().optional() });

/** The API server's own sentence about a refused request. */
function answerText({ status, body }: KubernetesAnswer): string {
  const parsed = statusBody.safeParse(body);
  const text = parsed.success ? (parsed.data.message ?? parsed.data.reason) : undefined;
  return text === undefined ? `HTTP ${status}` : `HTTP ${status}: ${text}`;
}

const terminatingBody = z.object({
  details: z.object({ causes: z.array(z.object({ reason: z.string().optional() })) }),
});

/** Whether a create was refused (403) because its namespace is being deleted, as the API server says in the causes. */
export function isTerminating({ status, body }: KubernetesAnswer): boolean {
  if (status !== 403) return false;
  const causes = terminatingBody.safeParse(body).data?.details.causes ?? [];
  return causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** Transient `KubernetesUnavailable` (or another reason) for an answer that is no success. */
export function refused(
  attempt: Attempt,
  answer: KubernetesAnswer,
  reason: Reason = 'KubernetesUnavailable',
): ProviderError {
  const text = answerText(answer);
  return failure(attempt, text, remedyFor(attempt, answer.status, text), reason, {
    httpStatus: answer.status,
  });
}

/** Transient `KubernetesUnavailable` for a request that got no answer. */
export function unanswered(attempt: Attempt, error: unknown): ProviderError {
  const remedy = 'Check that the Kubernetes API server is up and reachable from this process.';
  return failure(attempt, networkText(error), remedy, 'KubernetesUnavailable', {}, error);
}

/** A network failure in words; undici's wrappers say little, their innermost cause says it. */
export function networkText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'no answer within the time limit';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (error.cause instanceof Error && error.message === 'fetch failed')
    return networkText(error.cause);
  return code === undefined || error.message.includes(code)
    ? error.message
    : `${error.message} (${code})`;
}

function failure(
  attempt: Attempt,
  answer: string,
  remedy: string,
  reason: Reason,
  facts: { httpStatus?: number },
  cause?: unknown,
): ProviderError {
  const message = `Kubernetes did not ${attempt.verb} ${attempt.object}: ${answer}. ${remedy}`;
  return new ProviderError(
    'Transient',
    message,
    { reason, scope: 'proxy', remedy, ...facts },
    cause,
  );
}

function remedyFor({ rule }: Attempt, status: number, text: string): string {
  // Of a definition, and of a namespace: a 403 that no right would change.
  if (status === 403 && text.includes('terminating'))
    return 'It is being deleted, and takes nothing new meanwhile.';
  if (status === 401)
    return 'Check the credentials in the kubeconfig or the service account token.';
  if (status === 403) return `Grant the operator's role the RBAC rule «${rule}».`;
  if (status === 404) return 'Check that the custom resource definitions are installed.';
  if (status === 429 || status >= 500)
    return 'It is tried again; look at the API server if it stays.';
  return 'It is tried again.';
}
