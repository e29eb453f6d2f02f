/** What Temporal's UI says about a Proxy, for a person who has to act. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { detailsOf } from '../../workflows/details.ts';
import { plain } from '../../workflows/markdown.ts';
import { now, removal, state, trouble, vm } from '../support/proxyStates.ts';

const uid = '11111111-1111-4111-8111-111111111111';
const signal = `temporal workflow signal --namespace egress-proxies -w proxy-${uid} --name`;

function shown(changes: Parameters<typeof state>[0]): string[] {
  return detailsOf(state(changes), now, 'egress-proxies').split('\n\n');
}

describe('current details of a Proxy', () => {
  it('a wait for a task says which, since when, and until when it is left alone', () => {
    const text = shown({
      next: vm(100123, 'aa', { cloneUpid: 'UPID:pv1-1:1' }),
      step: 'awaitTask',
      upid: 'UPID:pv1-1:1',
      stepSinceMs: now,
      stepUntilMs: now + 600_000,
      lineTimings: { resolvePlacement: 0.3, cloneTemplate: 0.4 },
    });
    assert.equal(
      text[0],
      '**egress/p1** — Provisioning  \nVM `100123` (`proxy-p1-abcdef-11111111-aa`) on `pv1-1`, address not known yet',
    );
    assert.equal(
      text[1],
      '**Step under way**: `awaitTask` since 1970-01-01T00:16:40Z; looked at afresh at 1970-01-01T00:26:40Z  \nTask: `UPID:pv1-1:1`',
    );
    assert.match(text[2] ?? '', /^cloning template 9001 to VM 100123 on pv1-1/);
    assert.equal(text.at(-1), 'Seconds: `resolvePlacement` 0.3 · `cloneTemplate` 0.4');
  });

  it('trouble has its reason, attempt, since when, remedy, next attempt, the line that tries now and where more stands', () => {
    const text = shown({
      trouble: trouble({ reason: 'Forbidden', remedy: 'run as root: pveum acl list', attempt: 3 }),
    });
    assert.deepEqual(text.slice(1), [
      '**Waits: Forbidden** — no connection (allocateVmid, attempt 3, since 1970-01-01T00:16:40Z)  \n**Remedy**: run as root: `pveum acl list`',
      'Next attempt: 1970-01-01T00:16:41Z  \nMore: docs/errors.md, «Forbidden»; docs/operations.md, «allocateVmid»',
      `**Try now**: \`${signal} retry\``,
    ]);
  });

  it('what Proxmox said is shown to the letter, not taken for Markdown', () => {
    const message = 'wants <user>@<realm>!<tokenid>=<secret>, not *this*_';
    const [, waits = ''] = shown({ trouble: trouble({ message }) });
    assert.ok(waits.includes(String.raw`wants \<user\>@\<realm\>!`));
    assert.ok(waits.includes(String.raw`not \*this\*\_`));
  });

  it('a command line in a sentence is code, from its first word to its last', () => {
    const told: [string, string][] = [
      [
        'it waits: qm set 5 --protection 0 (stopVm)',
        'it waits: `qm set 5 --protection 0` (stopVm)',
      ],
      ['qm set 5 --agent 1, then stop it', '`qm set 5 --agent 1`, then stop it'],
      ['qm set 5 --ide2 none,media=cdrom', '`qm set 5 --ide2 none,media=cdrom`'],
      ['check (pvecm status) and port', 'check (`pvecm status`) and port'],
      [
        'pveum role modify R --append 1 --privs "A B" && pveum acl modify / --users u@pve --roles R; more',
        '`pveum role modify R --append 1 --privs "A B" && pveum acl modify / --users u@pve --roles R`; more',
      ],
      ['qm destroy 5 --purge on pv1', '`qm destroy 5 --purge` on pv1'],
      ['the vm is gone', 'the vm is gone'],
    ];
    for (const [text, shownAs] of told) assert.equal(plain(text), shownAs);
  });

  it('a deletion has the line that gives the VM up, and a leftover the reason it stays', () => {
    const leftover = {
      provider: 'pve',
      vmid: 100007,
      node: 'pv1-2',
      upid: '',
      reason: 'locked (clone); qm unlock 100007',
    };
    const text = shown({ deleting: true, removals: [removal], leftovers: [leftover] });
    assert.ok(text.includes(`**Give the VM up**: \`${signal} forceDelete\``));
    assert.ok(
      text.includes('**Left behind**: VM `100007` on `pv1-2`: locked (clone); `qm unlock 100007`'),
    );
  });

  it('a VM that is proven gone has no node and no address any more', () => {
    const gone = { ...removal, destroyed: true };
    const [head = ''] = shown({ deleting: true, removals: [gone] });
    assert.ok(head.endsWith('  \nVM `100005` (`proxy-p1-abcdef-11111111-old`) is gone'), head);
  });

  it('a Proxy that serves says so', () => {
    const health = {
      ip: '192.0.2.11',
      port: 3128,
      healthy: true,
      reason: 'ProbeSucceeded' as const,
      message: '',
      run: 'r',
      sequence: 1,
    };
    const serving = vm(100123, 'aa', { ip: '192.0.2.11' });
    const text = shown({ serving, health: [health] });
    assert.match(text[0] ?? '', /— Ready {2}\nVM `100123`/);
    assert.equal(text.at(-1), 'A request went through the proxy.');
  });
});
