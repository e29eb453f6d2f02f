/**
 * What the host or the moment decides, and what is therefore not compared: process ids, clock times, sizes of disks in
 * use, random MACs and UUIDs, names of temporary files, the order of keys and lists. Everything else has to be equal.
 */
export interface NormaliseContext {
  /** MACs that somebody chose (fixture, requests): these are compared. */
  knownMacs: ReadonlySet<string>;
  knownUuids: ReadonlySet<string>;
  /** Path below /api2/json. */
  path: string;
}

/** Values of these keys depend on the machine or the moment, whatever the endpoint. */
const VOLATILE = new Set(
  `pid pstart starttime endtime ctime uptime cpu mem memhost disk netin netout diskread diskwrite loadavg used avail
   used_fraction ssl_fingerprint free available idle wait kversion flags mhz model vendor family hvm ksm total
   current-kernel fingerprint nodeid timestamp cores cpus sockets user_hz boot-info pveversion`.split(
    /\s+/,
  ),
);

/** Where a whole number is a fact, not a measurement. */
const FACTS = new Set(['cpus', 'cores']);

/** One side of a comparison in canonical form. */
export function normaliseBody(body: string, context: NormaliseContext): unknown {
  if (body === '') return '';
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return normaliseText(body, context);
  }
  return walk(parsed, '', context);
}

function walk(value: unknown, key: string, context: NormaliseContext): unknown {
  if (Array.isArray(value)) {
    const log = withoutMeasurements(value);
    if (log !== null) return log.map((line) => normaliseText(line, context));
    const items: unknown[] = value.map((item: unknown) => walk(item, key, context));
    return items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([name, item]): [string, unknown] => [
      name,
      isVolatile(name, item, context) ? `<${name}>` : walk(item, name, context),
    ]);
    if ('key' in value && value.key === 'digest') entries.push(['value', '<digest>']);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  // Perl's number or text, by chance (30-cluster-tasks has both).
  if (key === 'saved') return String(value);
  if (typeof value !== 'string') return value;
  if (key === 'digest') {
    // The one digest that is the same everywhere, because the file is.
    return value === 'eb54fb9d9f120ba0c3bdf694f73b10002c375c38' ? value : '<digest>';
  }
  if (key === 'content' && value.includes(',')) return value.split(',').sort().join(',');
  return normaliseText(value, context);
}

/** Lines of a migration's log that measure the host, and the one that only the captures' QEMU writes. */
const MEASUREMENT =
  /query-backup|migration active,|average migration speed|migration completed, transferred|records (in|out)$|bytes .* copied,/;

/** A task log as its lines, or `null` when the list is something else. */
function withoutMeasurements(list: readonly unknown[]): string[] | null {
  const lines: { n: number; t: string }[] = [];
  for (const item of list) {
    if (!isRecord(item) || typeof item['t'] !== 'string' || typeof item['n'] !== 'number')
      return null;
    lines.push({ n: item['n'], t: item['t'] });
  }
  if (lines.length === 0) return null;
  return lines
    .sort((a, b) => a.n - b.n)
    .map(({ t }) => t)
    .filter((line) => !MEASUREMENT.test(line));
}

function isVolatile(name: string, value: unknown, context: NormaliseContext): boolean {
  const isVm = /^\/(nodes\/[^/]+\/qemu|cluster\/resources)/.test(context.path);
  if (isVm && FACTS.has(name)) return false;
  if (/^[rt]x-(bytes|packets)$/.test(name)) return true;
  if (name === 'total') return /\/(tasks|status|storage|log)$/.test(context.path) && value !== 0;
  if (name === 'used' || name === 'avail') return value !== 0;
  if (name === 'memory' && typeof value === 'string') return false;
  if (name === 'maxdisk' || name === 'maxmem') return false;
  return VOLATILE.has(name);
}

/** Random or host-made parts inside texts. */
export function normaliseText(text: string, context: NormaliseContext): string {
  return text
    .replace(
      /UPID:([^:]+):[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:/g,
      'UPID:$1:<pid>:<pstart>:<time>:',
    )
    .replace(/\b([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b/g, (mac) =>
      context.knownMacs.has(mac.toUpperCase()) ? mac : '<mac>',
    )
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (uuid) =>
      context.knownUuids.has(uuid) ? uuid : '<uuid>',
    )
    .replace(/pveupload-[0-9a-f]{32}/g, 'pveupload-<random>')
    .replace(/\.conf\.tmp\.\d+/g, '.conf.tmp.<pid>')
    .replace(/(failed to get address info for: \S+) .*$/s, '$1 <resolver>')
    .replace(/state-suspend-\d{4}-\d{2}-\d{2}/g, 'state-suspend-<day>')
    .replace(/\b\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\b/g, '<when>')
    .replace(/\b[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d{2}:\d{2}:\d{2} \d{4}\b/g, '<when>')
    .replace(/duration \d{2}:\d{2}:\d{2}/g, 'duration <time>')
    .replace(/fe80::[0-9a-f:]+/g, '<link-local>')
    .replace(/\b(10\.99\.\d+\.\d+|127\.\d+\.\d+\.\d+)\b/g, (address) =>
      /^(10\.99\.0\.[12]|127\.0\.0\.1)$/.test(address) ? address : '<address>',
    );
}

/** Paths at which two canonical values differ, with both values. */
export function differences(expected: unknown, actual: unknown, path = ''): string[] {
  if (JSON.stringify(expected) === JSON.stringify(actual)) return [];
  if (isRecord(expected) && isRecord(actual)) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
    return [...keys].flatMap((key) => differences(expected[key], actual[key], `${path}.${key}`));
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((item: unknown, index) =>
      differences(item, actual[index], `${path}[${index}]`),
    );
  }
  return [`${path || '(body)'}: captured ${short(expected)}, simulated ${short(actual)}`];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function short(value: unknown): string {
  const text = value === undefined ? '(nothing)' : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
