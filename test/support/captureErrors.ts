/** Every failure that the captures of Proxmox VE show: answers of 400 and above, and tasks that did not end OK. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/** An answer of 400 or above. */
export interface CapturedAnswer {
  kind: 'answer';
  file: string;
  method: string;
  /** Below `/api2/json`. */
  path: string;
  status: number;
  reason: string;
  body: string;
}

/** A task whose end was neither `OK` nor a warning. */
export interface CapturedTask {
  kind: 'task';
  file: string;
  type: string;
  exitstatus: string;
}

const answerSchema = z.looseObject({
  status: z.int(),
  reason: z.string(),
  body: z.string().nullish(),
});
const requestSchema = z.looseObject({ method: z.string(), path: z.string() });
const exchangeSchema = z.looseObject({ request: requestSchema, response: answerSchema });
const rawSchema = z.looseObject({ rawResponse: z.string(), rawRequest: z.string().optional() });
/** 18-workers-blocked.json: only kind and status line. */
const lineSchema = z.looseObject({ kind: z.string(), statusLine: z.string(), body: z.string() });
/** 15-node-*.json: what a Node client saw. */
const nodeSchema = z.looseObject({ status: z.int(), statusText: z.string(), body: z.string() });
const taskSchema = z.looseObject({ type: z.string(), exitstatus: z.string() });
const taskRowSchema = z.looseObject({ type: z.string(), endtime: z.number(), status: z.string() });

/** Reads all captures of a folder and collects their failures, tasks inside bodies included. */
export function capturedErrors(folder: string): (CapturedAnswer | CapturedTask)[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name) => {
      const content: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      return [...walk(content, name)];
    });
}

function* walk(value: unknown, file: string): Generator<CapturedAnswer | CapturedTask> {
  if (typeof value !== 'object' || value === null) return;
  const exchange = exchangeSchema.safeParse(value);
  if (exchange.success) {
    const { request, response } = exchange.data;
    const path = request.path.replace(/^\/api2\/json/, '');
    yield* answer(
      file,
      request.method,
      path,
      response.status,
      response.reason,
      response.body ?? '',
    );
  }
  const raw = rawSchema.safeParse(value);
  if (raw.success) yield* fromRaw(file, raw.data.rawRequest ?? '', raw.data.rawResponse);
  const line = lineSchema.safeParse(value);
  if (line.success) {
    const method = line.data.kind.split(' ')[0] ?? '';
    const [, status = '', reason = ''] = /^HTTP\/1\.1 (\d+) (.*)$/.exec(line.data.statusLine) ?? [];
    const path = line.data.kind.includes('config') ? '/nodes/pve1/qemu/110/config' : '/version';
    yield* answer(file, method, path, Number(status), reason, line.data.body);
  }
  const node = nodeSchema.safeParse(value);
  if (node.success) {
    yield* answer(file, 'POST', '/', node.data.status, node.data.statusText, node.data.body);
  }
  yield* taskEnds(file, value);
  for (const member of Object.values(value)) yield* walk(member, file);
}

function* answer(
  file: string,
  method: string,
  path: string,
  status: number,
  reason: string,
  body: string,
): Generator<CapturedAnswer | CapturedTask> {
  if (status >= 400) yield { kind: 'answer', file, method, path, status, reason, body };
  else if (body.startsWith('{')) yield* walk(jsonOrNull(body), file);
}

function* fromRaw(
  file: string,
  request: string,
  response: string,
): Generator<CapturedAnswer | CapturedTask> {
  const [, status, reason] = /^HTTP\/1\.\d (\d+) ([^\r\n]*)/.exec(response) ?? [];
  if (status === undefined) return;
  const [, method = 'GET', path = '/'] = /^(\S+) (?:\/api2\/json)?(\S*)/.exec(request) ?? [];
  const body = response.slice(response.indexOf('\r\n\r\n') + 4);
  yield* answer(file, method, path, Number(status), reason ?? '', body);
}

function* taskEnds(file: string, value: object): Generator<CapturedTask> {
  const task = taskSchema.safeParse(value);
  if (task.success) yield* ended(file, task.data.type, task.data.exitstatus);
  const row = taskRowSchema.safeParse(value);
  if (row.success) yield* ended(file, row.data.type, row.data.status);
}

function* ended(file: string, type: string, exitstatus: string): Generator<CapturedTask> {
  if (exitstatus === 'OK' || exitstatus.startsWith('WARNINGS: ')) return;
  yield { kind: 'task', file, type, exitstatus };
}

function jsonOrNull(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return parsed;
  } catch {
    return null;
  }
}
