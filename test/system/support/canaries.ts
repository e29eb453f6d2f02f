/** Secrets planted for a run, and everything the run wrote where none of them may be. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { z } from 'zod';
import { stateQueryName } from '../../../workflows/contract/messages.ts';
import { discoverText } from './proxies.ts';
import type { SystemStack } from './stack.ts';

/** A text that was written somewhere, and where. */
export interface Written {
  place: string;
  text: string;
}

/** Secret of the operator's token in the fixture `local.yaml`. */
export const simulatorToken = '00000000-0000-4000-8000-000000000001';

/** Places in which one of the secrets stands, as it is or in base64. */
export function findSecrets(
  secrets: Readonly<Record<string, string>>,
  written: readonly Written[],
): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => {
    const forms = [secret, ...base64Forms(secret)];
    return written
      .filter(({ text }) => forms.some((form) => text.includes(form)))
      .map(({ place }) => `${name} in ${place}`);
  });
}

/** What base64 of any text with the secret in it contains: without the characters that its neighbours decide on. */
function base64Forms(secret: string): string[] {
  return [0, 1, 2].map((offset) => {
    const text = Buffer.from('x'.repeat(offset) + secret).toString('base64');
    const whole = Math.floor((offset + Buffer.byteLength(secret)) / 3) * 4;
    return text.slice(offset === 0 ? 0 : 4, whole);
  });
}

/** Lines of a certificate or of a private key that are its own. */
export function pemLines(pem: string): string[] {
  return pem.split('\n').filter((line) => /^[A-Za-z0-9+/=]{60,}$/.test(line));
}

/** Whatever Temporal keeps or tells of every workflow: history, description, details, query. Needs a worker. */
export async function temporalTexts(stack: SystemStack): Promise<Written[]> {
  const written: Written[] = [];
  for (const { workflowId, type } of await stack.workflows()) {
    const handle = stack.temporal.workflow.getHandle(workflowId);
    written.push({ place: `history of ${workflowId}`, text: plain(await handle.fetchHistory()) });
    const { raw } = await handle.describe();
    written.push({ place: `description of ${workflowId}`, text: plain(raw) });
    const details = await handle.query('__temporal_workflow_metadata');
    written.push({ place: `details of ${workflowId}`, text: plain(details) });
    if (type !== 'proxy') continue;
    const state = await handle.query(stateQueryName);
    written.push({ place: `query of ${workflowId}`, text: plain(state) });
  }
  return written;
}

/** JSON with payloads as the text they hold. */
function plain(value: unknown): string {
  return JSON.stringify(opened(value));
}

function opened(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (Array.isArray(value)) return value.map(opened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, opened(inner)]));
}

/** Temporal's database as it is on disk: also what no API shows. */
export function databaseTexts({ folder }: SystemStack): Written[] {
  return readdirSync(folder.path)
    .filter((name) => name.startsWith('temporal.db'))
    .map((name) => ({ place: name, text: readFileSync(join(folder.path, name), 'latin1') }));
}

const withStatus = z.object({ items: z.array(z.object({ status: z.unknown() })) });

/** What users of Kubernetes and of the discovery API see, specs apart: those are theirs. */
export async function kubernetesTexts(stack: SystemStack): Promise<Written[]> {
  const json = (...args: string[]): Promise<string> => stack.kubectl('get', ...args, '-o', 'json');
  const statuses = withStatus.parse(JSON.parse(await json('px', '-A')));
  return [
    { place: 'events', text: await json('events', '-A') },
    { place: 'ProviderHealth', text: await json('ph') },
    { place: 'statuses', text: JSON.stringify(statuses.items.map(({ status }) => status)) },
    { place: 'discovery', text: await discoverText(stack, '?ready=all', 'application/json') },
  ];
}

/** The metrics pages of our programs, of the SDK and of Temporal. */
export async function metricsTexts({ ports }: SystemStack): Promise<Written[]> {
  const { workerMetrics, controllerMetrics, workerSdkMetrics, temporalMetrics } = ports;
  const pages = { workerMetrics, controllerMetrics, workerSdkMetrics, temporalMetrics };
  const read = Object.entries(pages).map(async ([place, port]) => {
    const { body } = await request(`http://127.0.0.1:${port}/metrics`);
    return { place, text: await body.text() };
  });
  return await Promise.all(read);
}

export function logTexts(stack: SystemStack): Written[] {
  return (['worker', 'controller', 'temporal'] as const).map((name) => ({
    place: `${name}.log`,
    text: stack.log(name),
  }));
}
