import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { bundleWorkflows } from '../../worker/bundle.ts';
import { tracingPlugin } from '../../worker/runtime/tracingPlugin.ts';
import * as workflows from '../../workflows/index.ts';
import {
  currentRelease,
  historiesOf,
  parseHistory,
  recordedReleases,
  workflowTypeOf,
  type RecordedHistory,
} from './histories.ts';
import { historyMessage } from './historyProto.ts';

let workflowBundle: WorkflowBundleWithSourceMap | undefined;

/** Throws DeterminismViolationError when today's workflows would have decided otherwise. */
async function replay(history: RecordedHistory): Promise<void> {
  assert.ok(workflowBundle);
  const options = { workflowBundle, plugins: [tracingPlugin()] };
  await Worker.runReplayHistory(options, historyMessage(history));
}

function createReady(): RecordedHistory {
  const found = historiesOf(currentRelease()).find(({ name }) => name === 'createReady');
  assert.ok(found, 'createReady was not recorded');
  return found.history;
}

/** The same history as if two steps had been scheduled in each other's place. */
function swapped(history: RecordedHistory, one: string, other: string): RecordedHistory {
  const text = JSON.stringify(history);
  const named = (step: string): string => `"activityType":{"name":"${step}"}`;
  assert.ok(text.includes(named(one)) && text.includes(named(other)));
  const parts = text.split(named(one)).map((part) => part.replaceAll(named(other), named(one)));
  return parseHistory(parts.join(named(other)));
}

describe('recorded histories', () => {
  before(async () => {
    const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
    // A replay that fails is told by its error; the SDK's log would only repeat it.
    Runtime.install({
      logger: new DefaultLogger('ERROR'),
      telemetryOptions: { logging: { filter } },
    });
    workflowBundle = await bundleWorkflows();
  });

  for (const release of recordedReleases()) {
    for (const { name, history } of historiesOf(release)) {
      it(`${release}/${name} replays`, () => replay(history));
    }
  }

  it('of a run whose steps came in another order do not replay', async () => {
    const altered = swapped(createReady(), 'resizeDisk', 'configureVm');
    await assert.rejects(replay(altered), DeterminismViolationError);
  });

  it('exist for the release in package.json and every workflow type', () => {
    assert.ok(recordedReleases().includes(currentRelease()));
    const types = new Set(
      historiesOf(currentRelease()).map(({ history }) => workflowTypeOf(history)),
    );
    const exported = Object.entries(workflows).filter(([, value]) => typeof value === 'function');
    assert.ok(exported.length > 0);
    assert.deepEqual(
      exported.map(([name]) => name).filter((name) => !types.has(name)),
      [],
      'record a history of it: test/replay/stories',
    );
  });

  it('a release without any is refused', () => {
    const folder = mkdtempSync(join(tmpdir(), 'histories-'));
    try {
      mkdirSync(join(folder, '9.9.9'));
      assert.deepEqual(recordedReleases(folder), ['9.9.9']);
      assert.throws(() => historiesOf('9.9.9', folder), /9\.9\.9 holds no history/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('say nothing about the machine they were recorded on', () => {
    for (const release of recordedReleases()) {
      for (const { name, history } of historiesOf(release)) {
        const text = JSON.stringify(history);
        const payloads = text.matchAll(/"data":"([^"]+)"/g);
        const decoded = [...payloads].map(([, data]) =>
          Buffer.from(data ?? '', 'base64').toString(),
        );
        for (const part of [text, ...decoded]) {
          assert.doesNotMatch(
            part,
            /"identity":"(?!recorder")|\d+@\w|file:\/\/|\/node_modules\//,
            name,
          );
        }
      }
    }
  });
});
