import { transportError, type ApiError } from './errors.ts';
import type { RawParams, RawValue } from './schema.ts';

/** A request target taken apart. */
export interface Target {
  path: string;
  segments: string[];
  query: RawParams;
  format: string;
}

/** Splits `/api2/json/nodes/…?query`; `format` is empty when it is none of ours (12-raw-api-without-format). */
export function parseTarget(target: string): Target {
  const question = target.indexOf('?');
  const rawPath = question < 0 ? target : target.slice(0, question);
  const query = question < 0 ? {} : parseForm(target.slice(question + 1));
  const decoded = decode(rawPath, false);
  const parts = decoded.split('/').filter((part) => part !== '');
  const format =
    parts[0] === 'api2' && /^(json|extjs)$/.test(parts[1] ?? '') ? (parts[1] ?? '') : '';
  const segments = parts.slice(format === '' ? (parts[0] === 'api2' ? 1 : 0) : 2);
  return { path: `/${segments.join('/')}`, segments, query, format };
}

/** Splits on `&` and `;` and keeps only the first two pieces around `=` (api-facts 1.5). */
function parseForm(form: string): RawParams {
  const params: RawParams = {};
  for (const pair of form.split(/[&;]/)) {
    if (pair === '') continue;
    const [key = '', value = ''] = pair.split('=');
    const name = decode(key, true);
    const text = decode(value, true);
    const before = params[name];
    params[name] = before === undefined ? text : [...asList(before), text];
  }
  return params;
}

function asList(value: RawValue): readonly (string | number | boolean)[] {
  return typeof value === 'object' ? value : [value];
}

function decode(text: string, plusIsBlank: boolean): string {
  const source = plusIsBlank ? text.replace(/\+/g, ' ') : text;
  const bytes: number[] = [];
  for (let at = 0; at < source.length; at += 1) {
    const hex = /^%([0-9A-Fa-f]{2})/.exec(source.slice(at, at + 3))?.[1];
    if (hex === undefined) bytes.push(source.charCodeAt(at) & 0xff);
    else {
      bytes.push(Number.parseInt(hex, 16));
      at += 2;
    }
  }
  return Buffer.from(bytes).toString('utf8');
}

/** Form or JSON, by its content type; throws Perl's complaint about broken JSON (12-json-invalid). */
export function parseBody(contentType: string | undefined, body: Buffer): RawParams {
  if (!/^application\/json\b/i.test(contentType ?? '')) return parseForm(body.toString('latin1'));
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    throw transportErrorFromPerl(body.toString('utf8'));
  }
  const params: RawParams = {};
  if (typeof parsed !== 'object' || parsed === null) return params;
  for (const [key, value] of Object.entries(parsed)) {
    const converted = toRaw(value);
    if (converted !== null) params[key] = converted;
  }
  return params;
}

function toRaw(value: unknown): RawValue | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return value;
  }
  if (!Array.isArray(value)) return null;
  return value.map((item: unknown) => String(item));
}

/** JSON::XS's complaint about an object key that is no string (12-json-invalid). */
function transportErrorFromPerl(body: string): ApiError {
  const at = body.startsWith('{') ? 1 : 0;
  const near = body.slice(at).replace(/\}.*$/s, '').trim();
  return transportError(
    500,
    `'"' expected, at character offset ${at} (before "${near}") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.`,
  );
}
