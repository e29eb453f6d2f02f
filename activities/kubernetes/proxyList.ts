/** All Proxies at one moment, page by page, as the API server has them now. */
import { z } from 'zod';
import type { KubernetesClient } from './client.ts';
import { refused } from './refusal.ts';
import { allProxiesPath } from './kubernetesRecords.ts';
import { identitySchema, type Identified } from './watchEvents.ts';

/** A whole list. */
export interface ProxyList<Kept = Identified> {
  /** The same for all pages; a watch goes on from here. */
  resourceVersion: string;
  objects: Kept[];
}

/**
 * Objects per page. With 200 KiB of cloud-init each, a page of 500 keeps the process from everything else for 2.5 s on a
 * busy machine and is not far from the 10 s that an answer may take; a page of 100 is.
 */
export const proxyPageSize = 100;

/** What was tried, for errors of list and watch. */
export const listAttempt = {
  verb: 'list',
  object: 'the Proxies of all namespaces',
  rule: 'proxies: get, list, watch',
} as const;

const listBody = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  // A server may write an empty list as null, as Go does.
  items: z.array(identitySchema).nullable(),
});
type ListBody = z.output<typeof listBody>;

/**
 * Without a `resourceVersion` every page is a consistent read. A continue token lives for some five minutes; when it expires
 * between two pages (410), everything is read again in one piece, as client-go does: begun anew page by page, a list
 * that takes too long would never come to an end. Throws Transient `KubernetesUnavailable`, or what the network threw.
 */
export async function listProxies(client: KubernetesClient, pageSize: number): Promise<ProxyList> {
  return await listKept(client, pageSize, (object) => object);
}

/** As `listProxies`, with only that of each object in memory which `keep` makes of it: cloud-init may be large. */
export async function listKept<Kept>(
  client: KubernetesClient,
  pageSize: number,
  keep: (object: Identified) => Kept,
): Promise<ProxyList<Kept>> {
  const objects: Kept[] = [];
  let next = '';
  for (;;) {
    const page = await readPage(client, {
      limit: String(pageSize),
      ...(next === '' ? {} : { continue: next }),
    });
    if (page === 'expired') return await listInOnePiece(client, keep);
    objects.push(...(page.items ?? []).map(keep));
    next = page.metadata.continue ?? '';
    if (next === '') return { resourceVersion: page.metadata.resourceVersion, objects };
  }
}

/** The resourceVersion the API server has got to, by the smallest list there is. Throws as `listProxies`. */
export async function newestVersion(client: KubernetesClient): Promise<string> {
  const page = await readPage(client, { limit: '1' });
  if (page === 'expired') throw refused(listAttempt, { status: 410, body: null });
  return page.metadata.resourceVersion;
}

async function listInOnePiece<Kept>(
  client: KubernetesClient,
  keep: (object: Identified) => Kept,
): Promise<ProxyList<Kept>> {
  const whole = await readPage(client, {});
  if (whole === 'expired') throw refused(listAttempt, { status: 410, body: null });
  const objects = (whole.items ?? []).map(keep);
  return { resourceVersion: whole.metadata.resourceVersion, objects };
}

async function readPage(
  client: KubernetesClient,
  query: Readonly<Record<string, string>>,
): Promise<ListBody | 'expired'> {
  const answer = await client.send({ method: 'GET', path: allProxiesPath, query });
  if (answer.status === 410) return 'expired';
  if (answer.status !== 200) throw refused(listAttempt, answer);
  const page = listBody.safeParse(answer.body);
  if (page.success) return page.data;
  throw refused(listAttempt, {
    status: 200,
    body: { message: 'the answer is no list of Proxies' },
  });
}
