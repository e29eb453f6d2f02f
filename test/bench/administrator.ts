/** Kubernetes of a stack over HTTP, as its administrator: a kubectl per request would keep the machine busy. */
import { KubeConfig } from '@kubernetes/client-node';
import {
  createKubernetesClient,
  type KubernetesClient,
} from '../../activities/kubernetes/client.ts';
import type { SystemStack } from '../system/support/stack.ts';

/** Proxies in the namespace `default`. */
export const proxiesPath = '/apis/egress-proxies.io/v1alpha1/namespaces/default/proxies';

/** A list of a thousand Proxies is some megabytes, and the machine may be busy. */
const boundMs = 60_000;

/** Close it. */
export function administrator(stack: SystemStack): KubernetesClient {
  const config = new KubeConfig();
  config.loadFromFile(stack.kubernetes.kubeconfigs.admin);
  return createKubernetesClient(config, boundMs);
}
