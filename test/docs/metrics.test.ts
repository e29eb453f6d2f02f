import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { createControllerMetrics } from '../../controller/metrics.ts';
import { createWorkerMetrics } from '../../worker/metrics.ts';
import { groupsIn, pages, read, rowsOf, sectionOf } from '../support/pages.ts';

interface Described {
  name: string;
  labels: string;
  from: string;
}

/** Our own metrics of a registry, with an example of each so that labels show. */
function described(
  from: string,
  metrics: { name: string; labelNames: readonly string[] }[],
): Described[] {
  return metrics
    .filter(({ name }) => name.startsWith('proxy_operator_'))
    .map(({ name, labelNames }) => ({ name, labels: labelNames.join(', '), from }));
}

const real = [
  ...described(
    'worker',
    metricsOf(
      createWorkerMetrics({
        configValid: () => true,
        providerHealth: () => Promise.resolve(new Map()),
      }).registry,
    ),
  ),
  ...described(
    'controller',
    metricsOf(
      createControllerMetrics({
        view: { list: () => [], synced: () => true, lastSyncMs: () => 0 },
        temporal: () => 'up',
      }),
    ),
  ),
];

/** prom-client keeps the label names of a metric without a type for them. */
function metricsOf(registry: {
  getMetricsAsArray(): readonly object[];
}): { name: string; labelNames: readonly string[] }[] {
  return registry.getMetricsAsArray().map((metric) => {
    const name = 'name' in metric && typeof metric.name === 'string' ? metric.name : '';
    const labels = 'labelNames' in metric && Array.isArray(metric.labelNames) ? metric.labelNames : [];
    return { name, labelNames: labels.map(String) };
  });
}

test('the table of metrics says what the programs serve, with labels and source', () => {
  const documented = rowsOf(sectionOf(read('docs/operations.md'), '## Metrics')).map(
    ([name = '', labels = '', from = '']) => ({ name: name.replaceAll('`', ''), labels, from }),
  );
  const byName = (a: Described, b: Described): number => a.name.localeCompare(b.name);
  assert.ok(real.length > 5);
  assert.deepEqual(documented.sort(byName), real.sort(byName));
});

test('every metric that a page names exists', () => {
  const known = new Set(real.map(({ name }) => name));
  const named = groupsIn(
    pages.map(({ text }) => text),
    /\b(proxy_operator_[a-z_]+)\b/g,
  );
  assert.deepEqual(
    named.filter((name) => !known.has(name)),
    [],
  );
});

const alertRules = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
});
const dashboard = z.object({
  panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })),
});

function monitoring(file: string): string {
  return readFileSync(new URL(`../../deploy/monitoring/${file}`, import.meta.url), 'utf8');
}

test('alerts and dashboard ask only for metrics that exist, by labels that they have', () => {
  const { groups } = alertRules.parse(parse(monitoring('alerts.yaml')));
  const { panels } = dashboard.parse(JSON.parse(monitoring('dashboard.json')));
  const queries = [
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
  assert.ok(queries.length > 15);
  for (const query of queries) {
    const [name = ''] = /proxy_operator_[a-z_]+?(?=(_bucket|_count)?\b)/.exec(query) ?? [];
    const metric = real.find((known) => known.name === name);
    assert.ok(metric, query);
    const grouped = groupsIn([query], /\bby \(([^)]*)\)/g).flatMap((list) => list.split(/, */));
    const selected = groupsIn([query], /[{,] *([a-z_]+) *=~?/g);
    // `le` is the label that a histogram's buckets have of themselves.
    const known = new Set([...metric.labels.split(', '), 'le']);
    assert.deepEqual([...grouped, ...selected].filter((label) => !known.has(label)), [], query); // prettier-ignore
  }
});
