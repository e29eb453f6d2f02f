import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forceDeleteAnnotation, retryAnnotation } from '../../api/proxy.ts';
import { temporalDefaults } from '../../worker/runtime/temporalSettings.ts';
import {
  collectScheduleId,
  collectWorkflowType,
  mainTaskQueue,
  probesWorkflowId,
  probesWorkflowType,
  providerQueue,
  providerWaitQueue,
  providerWorkflowId,
  providerWorkflowType,
  proxyWorkflowId,
  proxyWorkflowType,
  searchAttributeTypes,
  signalNames,
  stateQueryName,
} from '../../workflows/contract/messages.ts';
import { assertSameNames, groupsIn, namesOf, read, rowsOf, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const runbook = read('docs/operations.md');
const readme = read('README.md');

test('the runbook lists the signals and queries of the code, and no others', () => {
  const names = namesOf(sectionOf(runbook, '### Signals and queries'));
  assertSameNames(names, [...Object.values(signalNames), stateQueryName]);
});

test('a signal is called reserved exactly when no workflow handles it', () => {
  const handled = groupsIn([source('workflows/signals.ts')], /signalNames\.(\w+)/g);
  const reserved = rowsOf(sectionOf(runbook, '### Signals and queries'))
    .filter((cells) => cells.join(' ').includes('reserved'))
    .map(([name = '']) => name.replaceAll('`', ''));
  assertSameNames(
    reserved,
    Object.values(signalNames).filter((name) => !handled.includes(name)),
  );
});

test('the runbook lists the search attributes of the code, and no others', () => {
  assertSameNames(
    namesOf(sectionOf(runbook, '### Search attributes')),
    Object.keys(searchAttributeTypes),
  );
});

test('the runbook lists the workflows of the bundle with their IDs, and the queues', () => {
  const workflows = sectionOf(runbook, '### Workflows');
  assertSameNames(namesOf(workflows), [
    proxyWorkflowType,
    probesWorkflowType,
    providerWorkflowType,
    collectWorkflowType,
  ]);
  assertSameNames(
    namesOf(workflows),
    groupsIn([source('workflows/index.ts')], /export \{ (\w+) \}/g),
  );
  assertSameNames(namesOf(workflows, 1), [
    proxyWorkflowId('<uid>'),
    probesWorkflowId,
    providerWorkflowId('<provider>'),
    `${collectScheduleId('<provider>')}-<time>`,
  ]);
  assertSameNames(namesOf(sectionOf(runbook, '### Queues')), [
    mainTaskQueue,
    providerQueue('<provider>'),
    providerWaitQueue('<provider>'),
  ]);
});

test('README and runbook give the exact lines that force a deletion, the runbook those of a retry', () => {
  const { namespace } = temporalDefaults;
  const signal = (name: string): string =>
    `temporal workflow signal --namespace ${namespace} -w ${proxyWorkflowId('<uid>')} --name ${name}`;
  for (const { path, text } of [readme, runbook]) {
    assert.ok(text.includes(signal(signalNames.forceDelete)), path);
    assert.ok(text.includes(`${forceDeleteAnnotation}="$(date)"`), path);
  }
  assert.ok(runbook.text.includes(signal(signalNames.retry)));
  assert.ok(runbook.text.includes(`${retryAnnotation}="$(date)"`));
});

test('every command for Temporal names the namespace', () => {
  const commands = groupsIn([readme.text, runbook.text], /^(temporal workflow .*)$/gm);
  assert.ok(commands.length > 5);
  for (const command of commands) {
    assert.match(command, new RegExp(` --namespace ${temporalDefaults.namespace}\\b`));
  }
});

test('the lines for tctl, which nobody runs here, name the same namespace, workflows, signals and query', () => {
  const lines = groupsIn([runbook.text], /^(tctl .*)$/gm);
  assert.ok(lines.length > 3);
  const signals = groupsIn(lines, /workflow signal .*--name (\w+)/g);
  assert.deepEqual([...new Set(signals)], [signalNames.retry, signalNames.forceDelete]);
  assert.deepEqual(groupsIn(lines, /--query_type (\w+)/g), [stateQueryName]);
  for (const line of lines) {
    assert.ok(line.startsWith(`tctl --namespace ${temporalDefaults.namespace} `), line);
    const [, id] = /--workflow_id (\S+)/.exec(line) ?? [];
    if (id !== undefined) assert.equal(id, proxyWorkflowId('<uid>'));
    const [, schedule] = /--schedule_id (\S+)/.exec(line) ?? [];
    if (schedule !== undefined) assert.equal(schedule, collectScheduleId('<provider>'));
  }
});
