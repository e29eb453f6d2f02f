/** Events of events.k8s.io/v1: one object per fact, counted when the fact repeats. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { apiVersion } from '../../api/proxy.ts';
import type { ProxyEvent } from '../../workflows/contract/proxy.ts';
import type { KubernetesClient } from './client.ts';
import { isTerminating, refused } from './refusal.ts';

/** Event source, field manager and image share this name (design §10). */
export const component = 'egress-proxies-operator';

/** The API server refuses a longer note (1 KiB). */
const maxNoteBytes = 1024;
const recorded = z.object({ series: z.object({ count: z.number() }).optional() });

/** An object of ours that an Event is about. */
export interface Regarding {
  kind: string;
  /** `null`: not in a namespace; its Events are in `default`, as Kubernetes wants it. */
  namespace: string | null;
  name: string;
  uid: string;
}

/**
 * Records one Event. Its name is derived from what it says, so a repetition (also by another worker, also after a restart)
 * meets the first one and raises its count, for as long as Kubernetes keeps it (an hour by default).
 * `false`: its namespace is being deleted and takes no new object. Throws ProviderError or the network's error.
 */
export async function sendEvent(
  client: KubernetesClient,
  about: Regarding,
  event: ProxyEvent,
  instance: string,
  now: Date,
): Promise<boolean> {
  const name = eventName(about, event);
  const namespace = about.namespace ?? 'default';
  const collection = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events`;
  const attempt = {
    object: `Event ${namespace}/${name}`,
    rule: 'events.k8s.io/events: create, patch',
  };
  const created = await client.send({
    method: 'POST',
    path: collection,
    body: eventObject(about, event, { name, namespace }, instance, now),
  });
  if (created.status < 300) return true;
  if (isTerminating(created)) return false;
  if (created.status !== 409) throw refused({ ...attempt, verb: 'create' }, created);

  const path = `${collection}/${name}`;
  // An empty patch is a read that needs no privilege beyond the patch that follows.
  const known = await client.send({ method: 'PATCH', path, body: {} });
  // 404: it expired between the two requests. The next repetition records it again.
  if (known.status === 404) return true;
  if (known.status >= 300) throw refused({ ...attempt, verb: 'patch' }, known);
  const count = (recorded.parse(known.body).series?.count ?? 1) + 1;
  const counted = await client.send({
    method: 'PATCH',
    path,
    body: { series: { count, lastObservedTime: microTime(now) } },
  });
  if (counted.status >= 300 && counted.status !== 404) {
    throw refused({ ...attempt, verb: 'patch' }, counted);
  }
  return true;
}

function eventObject(
  { kind, namespace, name, uid }: Regarding,
  event: ProxyEvent,
  metadata: { name: string; namespace: string },
  instance: string,
  now: Date,
): unknown {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata,
    eventTime: microTime(now),
    reportingController: component,
    reportingInstance: instance.slice(0, 128),
    type: event.type,
    reason: event.reason,
    action: event.action,
    note: cutNote(event.message),
    regarding: { apiVersion, kind, ...(namespace === null ? {} : { namespace }), name, uid },
  };
}

function eventName(about: Regarding, event: ProxyEvent): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([about.uid, event.type, event.reason, event.action, event.message]))
    .digest('hex');
  return `${about.name.slice(0, 200).replace(/[-.]+$/, '')}.${digest.slice(0, 16)}`;
}

function cutNote(message: string): string {
  if (Buffer.byteLength(message) <= maxNoteBytes) return message;
  const room = maxNoteBytes - Buffer.byteLength('…');
  // A cut inside a character leaves U+FFFD at the end, three bytes that would not fit.
  return `${Buffer.from(message)
    .subarray(0, room)
    .toString('utf8')
    .replace(/\uFFFD$/, '')}…`;
}

/** The format of metav1.MicroTime. */
function microTime(now: Date): string {
  return now.toISOString().replace('Z', '000Z');
}
