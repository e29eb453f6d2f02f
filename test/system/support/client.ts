/** A client of the proxies: it asks discovery where they are, and sends its requests through them. */
import assert from 'node:assert/strict';
import { ProxyAgent, request } from 'undici';
import { messageOf } from '../../../deploy/dev/program.ts';
import { eventually } from '../../support/eventually.ts';
import { discoverText } from './proxies.ts';
import type { SystemStack } from './stack.ts';

export interface ClientReport {
  requests: number;
  /** Why a request failed, or nothing was listed. */
  failures: string[];
  /** What was listed, each answer once: an empty one as ''. */
  listings: string[];
}

/** Longer than any test lets it run. */
const longestMs = 300_000;

/** Begins at once; one request after the other, each through an address that was listed just before. */
export function startClient(stack: SystemStack): { stop(): Promise<ClientReport> } {
  const report: ClientReport = { requests: 0, failures: [], listings: [] };
  let ended = false;
  const look = async (): Promise<boolean> => {
    try {
      const listing = (await discoverText(stack)).trim();
      if (listing !== report.listings.at(-1)) report.listings.push(listing);
      await expectPage(stack, listing);
    } catch (error) {
      report.failures.push(messageOf(error));
    }
    report.requests += 1;
    return ended;
  };
  const looking = eventually(look, longestMs);
  // A failure is thrown by `stop`; until then nobody waits for it.
  looking.catch(() => undefined);
  return {
    stop: async () => {
      ended = true;
      await looking;
      return report;
    },
  };
}

/** The page through the proxy at `address`, `ip:port`. Throws when it does not come. */
export async function expectPage({ pages }: SystemStack, address: string): Promise<void> {
  assert.notEqual(address, '', 'no proxy is listed');
  const proxy = new ProxyAgent({ uri: `http://${address}`, proxyTunnel: false });
  try {
    const { statusCode, body } = await request(pages.pageUrl, { dispatcher: proxy });
    const page = { status: statusCode, text: (await body.text()).trim() };
    assert.deepEqual(page, { status: 200, text: pages.sentence }, `through ${address}`);
  } finally {
    await proxy.close();
  }
}
