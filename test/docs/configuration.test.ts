import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { configKeys, type ConfigKey } from '../../api/configKeys.ts';
import { forceDeleteAnnotation, retryAnnotation } from '../../api/proxy.ts';
import { proxySpecSchema } from '../../api/proxySpec.ts';
import { loadProvidersConfig, providersConfigSchema } from '../../api/providersConfig.ts';

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

/** Rows of the first table below a heading, without its head. */
function tableBelow(heading: string): string[] {
  const [, section = ''] = page.split(`\n${heading}\n`);
  const [first = ''] = section.match(/(^\|.*\n)+/m) ?? [];
  return first.trimEnd().split('\n').slice(2);
}

function shown(value: unknown): string {
  if (value === undefined) return '';
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

function providerRow(key: ConfigKey, prefix: string): string {
  const path = key.path.slice(prefix.length);
  return `| \`${path}\` | ${key.required ? 'yes' : ''} | ${shown(key.default)} | ${key.description} |`;
}

const [, example = ''] = /```yaml\n(providers:[\s\S]*?)```/.exec(page) ?? [];
const keys = configKeys(providersConfigSchema);
const block = 'providers[].proxmox.';

// Row by row and in order: a key without a row, a row without a key and a changed default all show in the difference.
test('the table of each provider says what the schema says', () => {
  const own = keys.filter(({ path }) => !path.startsWith(block));
  assert.deepEqual(
    tableBelow('### Each provider'),
    own.map((key) => providerRow(key, 'providers[].')),
  );
});

test('the table of proxmox says what the schema says', () => {
  const inBlock = keys.filter(({ path }) => path.startsWith(block));
  assert.deepEqual(
    tableBelow('### proxmox'),
    inBlock.map((key) => providerRow(key, block)),
  );
});

test('the table of the Proxy says what the schema says', () => {
  assert.deepEqual(
    tableBelow('## Proxy'),
    configKeys(proxySpecSchema).map(
      ({ path, default: value, description }) =>
        `| \`${path}\` | ${shown(value)} | ${description} |`,
    ),
  );
});

test('the annotations of the page are those of the code', () => {
  const names = tableBelow('### Annotations').map((row) => /^\| `([^`]+)`/.exec(row)?.[1]);
  assert.deepEqual(names, [retryAnnotation, forceDeleteAnnotation]);
});

test('the example of the page is accepted', () => {
  assert.equal(loadProvidersConfig(example, 'configuration.md').providers.length, 1);
});

test('the problems the page shows are what a file with these mistakes gives', () => {
  const [, promised = ''] = /```\n(providers\.yaml is not accepted:[\s\S]*?)\n```/.exec(page) ?? [];
  const faulty = `${example}      vlantag: 4\n      vmidRange: { min: 200, max: 100 }\n`;
  assert.throws(() => loadProvidersConfig(faulty, 'providers.yaml'), { message: promised });
});
