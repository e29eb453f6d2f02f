/** Every command line of the runbook, typed on a stack in the situation it is meant for, and what comes of it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { runCommand } from '../../deploy/dev/command.ts';
import { simulatedVms } from './support/cluster.ts';
import {
  conditionOf,
  eventsOf,
  expectNothingLeft,
  findProxy,
  managedSpec,
  proxyManifest,
  readProxy,
  until,
  untilProxy,
  untilReady,
} from './support/proxies.ts';
import { commandLines, runLines } from './support/runbook.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const setting = { stack: { temporalDb: 'memory' }, concurrency: 6 } as const;
const typed = new Set<string>();

/** The lines under a heading of the page; all of them, or those that hold one of the given texts, in the given order. */
function linesUnder(heading: string, ...parts: string[]): string[] {
  const all = commandLines.filter((line) => line.heading === heading).map(({ text }) => text);
  const chosen = parts.length === 0 ? all : parts.map((part) => only(all, part));
  for (const line of chosen) typed.add(line);
  return chosen;
}

function only(lines: readonly string[], part: string): string {
  const [line, ...others] = lines.filter((one) => one.includes(part));
  assert.ok(line !== undefined && others.length === 0, `one line with «${part}»`);
  return line;
}

/** Types lines in a shell and returns what they print; a line that fails is a failure of the test. */
async function type(
  stack: SystemStack,
  lines: readonly string[],
  words: Record<string, string> = {},
): Promise<string> {
  const { code, text } = await runLines(stack, lines, words);
  assert.equal(code, 0, text);
  return text;
}

async function refuse(stack: SystemStack, name: string, path: string): Promise<void> {
  const action = { kind: 'status', status: 403, when: 'before', reason: forbidden };
  await stack.simulator.admin('POST', '/faults', { path, name, times: 10_000, action });
}
const forbidden = 'Permission check failed (/vms/9001, VM.Clone)';

onOneStack('the runbook', setting, (story) => {
  story('three places to look show a Proxy that is well', async (stack) => {
    const name = 'looked-at';
    await stack.apply(proxyManifest(name, managedSpec()));
    const { status, metadata } = await untilReady(stack, name);
    const words = { 'proxy-sample': name, '<uid>': metadata.uid };
    const text = await type(stack, linesUnder('Three places to look'), words);
    assert.match(text, new RegExp(`${name} .*Ready .*${status.node}.*${status.vmid}`));
    assert.equal(text.match(/AddressKnown/g)?.length, 3, 'both show the events');
    assert.match(text, /proxmox-local +proxmox +2\/2/);
    assert.match(text, /\*\*default\/looked-at\*\* — Ready/);
    assert.match(text, /"?phase"?: ?"?Ready/);
    const waited = await type(
      stack,
      linesUnder('Wait in a script', 'condition=Ready', '.phase', 'Reconciling'),
      words,
    );
    assert.equal(waited.match(/condition met/g)?.length, 3, waited);
    const listed = await type(stack, linesUnder('A new Proxy stays without a status'), words);
    assert.match(listed, /x-temporal: up/i);
    assert.ok(listed.includes(metadata.uid), 'Temporal finds it by name');
    await stack.kubectl('delete', 'px', name, '--wait=false');
    // It may say nothing: what is gone already needs no waiting.
    await type(stack, linesUnder('Wait in a script', 'for=delete'), words);
    assert.equal(await stack.kubectl('get', 'px', name, '--ignore-not-found', '-o=name'), '');
  });

  story('a pause stops a deletion, and its end lets it go on', async (stack) => {
    const name = 'paused';
    await stack.apply(proxyManifest(name, managedSpec()));
    const proxy = await untilReady(stack, name);
    const words = { 'proxy-sample': name };
    await type(stack, linesUnder('Pause', '"paused":true'), words);
    await stack.kubectl('delete', 'px', name, '--wait=false');
    await untilProxy(stack, name, 'wait for the end of its pause', (object) => {
      return conditionOf(object, 'Reconciling').reason === 'DeletionPaused';
    });
    await type(stack, linesUnder('Pause', '"paused":false'), words);
    await expectNothingLeft(stack, proxy);
  });

  story(
    'what one thing blocks is found with its reason, and all of it tried again',
    async (stack) => {
      const names = ['blocked-a', 'blocked-b'];
      const labels = { tier: 'fast' };
      await refuse(stack, 'proxy-blocked-', '/clone$');
      for (const name of names) await stack.apply(proxyManifest(name, managedSpec(), { labels }));
      for (const name of names)
        await untilProxy(stack, name, 'be refused', (object) => {
          return conditionOf(object, 'Stalled').reason === 'Forbidden';
        });
      const ids = await Promise.all(
        names.map(async (name) => (await readProxy(stack, name)).status.workflowID ?? ''),
      );
      const blocked = 'What is stuck, why, since when';
      await until(stack, 'Temporal should list what is blocked', async () => {
        for (const part of ['IS NOT NULL', 'ProxyProvider']) {
          const text = await type(stack, linesUnder(blocked, part));
          assert.ok(
            ids.every((id) => text.includes(id)),
            text,
          );
        }
        const refused = await type(stack, linesUnder('Token, rights or certificate are refused'));
        assert.ok(
          ids.every((id) => refused.includes(id)),
          refused,
        );
      });
      const table = await type(stack, linesUnder(blocked, 'custom-columns'));
      assert.match(table, /blocked-a .*Permission check failed.*pveum.*since 20/);
      for (const part of ['STARTS_WITH', 'ProxyNode', 'ProxyVmid', 'count'])
        await type(stack, linesUnder(blocked, part));
      const [id = ''] = ids;
      const words = { 'proxy-<uid>': id, '<uid>': id };
      const state = await type(stack, linesUnder(blocked, '--type state'), words);
      assert.match(state, /permission/);
      assert.match(state, /"?since"?: ?"?20\d\d-/);
      await stack.simulator.admin('DELETE', '/faults');
      const again = linesUnder('Try again now', '--query', '-l tier=fast');
      await type(stack, again);
      for (const name of names) {
        const proxy = await untilReady(stack, name);
        assert.match(proxy.status.handled.retry ?? '', /20\d\d/);
        assert.ok((await eventsOf(stack, proxy)).some(({ reason }) => reason === 'RetryRequested'));
        await stack.kubectl('delete', 'px', name, '--wait=false');
        await expectNothingLeft(stack, proxy);
      }
    },
  );

  story('one Proxy is tried again by annotation and by signal', async (stack) => {
    const name = 'retried';
    await stack.apply(proxyManifest(name, managedSpec()));
    const proxy = await untilReady(stack, name);
    const words = { 'proxy-sample': name, '<uid>': proxy.metadata.uid };
    await type(
      stack,
      linesUnder('Try again now', 'annotate px proxy-sample', '-w proxy-<uid>'),
      words,
    );
    await untilProxy(stack, name, 'tell how it was asked', async (object) => {
      const asked = (await eventsOf(stack, proxy)).map(({ message }) => message).join('\n');
      assert.match(asked, /by annotation/);
      assert.match(asked, /by signal/);
      return object.status.handled.retry !== null;
    });
    await stack.kubectl('delete', 'px', name, '--wait=false');
    await expectNothingLeft(stack, proxy);
  });

  for (const [way, part] of [
    ['annotation', 'annotate px'],
    ['signal', '--name forceDelete'],
  ] as const)
    story(`a protected VM is given up by ${way}, and the result names it`, async (stack) => {
      const name = `forced-${way}`;
      await stack.apply(proxyManifest(name, managedSpec()));
      const { status, metadata } = await untilReady(stack, name);
      await stack.simulator.admin('POST', `/vms/${status.vmid}/config`, { protection: '1' });
      const words = { 'proxy-sample': name, '<uid>': metadata.uid };
      await type(stack, linesUnder('Force delete', 'kubectl delete'), words);
      await untilProxy(stack, name, 'be blocked', (object) => {
        return conditionOf(object, 'Reconciling').reason === 'DeletionBlocked';
      });
      await type(stack, linesUnder('Force delete', part), words);
      await until(stack, `${name} should be gone`, async () => {
        assert.equal(await findProxy(stack, name), null);
      });
      const listed = await type(stack, linesUnder('Force delete', 'workflow list'), words);
      assert.ok(listed.includes(metadata.uid), listed);
      const result = await type(stack, linesUnder('Force delete', 'workflow result'), words);
      assert.match(result, new RegExp(`"?vmid"?: ?${status.vmid}`));
      const left = await simulatedVms(stack.simulator);
      assert.ok(left.some(({ vmid }) => vmid === status.vmid));
    });

  story(
    'the collection of orphans has a note, is paused with a reason, and goes on',
    async (stack) => {
      const schedule = stack.temporal.schedule.getHandle('gc-proxmox-local');
      assert.match((await schedule.describe()).state.note ?? '', /Pause it to stop that/);
      await type(stack, linesUnder('Orphans', 'describe', 'trigger'));
      const round = await firstRound(stack);
      const rounds = await type(stack, linesUnder('Orphans', 'workflow list'));
      assert.ok(rounds.includes(round), rounds);
      const words = { 'gc-<provider>-<time>': round };
      const result = await type(stack, linesUnder('Orphans', 'workflow result'), words);
      assert.match(result, /provider/);
      await type(stack, linesUnder('Orphans', '--pause'));
      const paused = (await schedule.describe()).state;
      assert.deepEqual([paused.paused, paused.note], [true, 'restore of etcd']);
      await type(stack, linesUnder('Orphans', '--unpause'));
      assert.equal((await schedule.describe()).state.paused, false);
    },
  );

  story('the namespace exists already, which is what its line says', async (stack) => {
    const { code, text } = await runLines(stack, linesUnder('Temporal is away'), {});
    assert.notEqual(code, 0);
    assert.match(text, /already (exists|registered)/i);
  });
});

async function firstRound(stack: SystemStack): Promise<string> {
  let found = '';
  await until(stack, 'a round should have ended', async () => {
    const query = "WorkflowType = 'collectOrphans' AND ExecutionStatus = 'Completed'";
    found = (await stack.workflows(query))[0]?.workflowId ?? '';
    return found !== '';
  });
  return found;
}

test('every block of the runbook is shell that can be read', async () => {
  assert.ok(commandLines.length > 30);
  for (const { text } of commandLines) {
    const script = text.replaceAll(/<[a-z]+>/g, 'x');
    const { code, stderr } = await runCommand('bash', ['-n', '-c', script]);
    assert.equal(code, 0, `${text}: ${stderr}`);
  }
});

after(() => {
  const untyped = commandLines.map(({ text }) => text).filter((text) => !typed.has(text));
  assert.deepEqual(untyped, [], 'every line of the runbook was typed');
});
