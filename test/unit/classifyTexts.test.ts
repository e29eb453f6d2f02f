/** Facts and remedies taken out of Proxmox's texts, and texts known from its source only (api-facts). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { classifyAnswer, classifyTaskExit } from '../../activities/proxmox/classify.ts';
import type { ProviderError } from '../../activities/providerError.ts';
import type { Attempt } from '../../activities/proxmox/classifyVerdict.ts';

const peer = { address: 'pve1:8006', tokenId: 'proxy-operator@pve!operator' };

function asWords({ errorClass, facts }: ProviderError): string {
  return `${errorClass} ${facts.reason} ${facts.scope}`;
}

function refused(call: string, message: string): ProviderError {
  const attempt: Attempt = { provider: 'lab', call, method: 'POST', what: call };
  return classifyAnswer(attempt, { status: 403, reason: message, message, errors: {} }, peer);
}

function failed(call: string, message: string, status = 500): ProviderError {
  const attempt: Attempt = { provider: 'lab', call, method: 'POST', what: call };
  return classifyAnswer(attempt, { status, reason: message, message, errors: {} }, peer);
}

describe('facts taken from texts', () => {
  const who = "--users proxy-operator@pve --tokens 'proxy-operator@pve!operator'";

  it('a 403 names the pveum line that grants the privilege where the guide grants it', () => {
    const remedies: [string, string, string][] = [
      [
        'clone',
        'Permission check failed (/vms/9001, VM.Clone)\n',
        `pveum role modify ProxyOperator --append 1 --privs "VM.Clone" && pveum acl modify / ${who} --roles ProxyOperator`,
      ],
      [
        'deleteVolume',
        'Permission check failed (/storage/proxy-seeds, Datastore.Allocate)\n',
        `pveum role modify ProxyOperatorSeeds --append 1 --privs "Datastore.Allocate" && pveum acl modify /storage/proxy-seeds ${who} --roles ProxyOperatorSeeds`,
      ],
      [
        'getAgentInterfaces',
        'Permission check failed (/vms/101, VM.GuestAgent.Audit|VM.GuestAgent.Unrestricted)\n',
        `pveum role modify ProxyOperator --append 1 --privs "VM.GuestAgent.Audit" && pveum acl modify / ${who} --roles ProxyOperator`,
      ],
      // POST clone without VM.Allocate names nothing (pve/README 6).
      [
        'clone',
        'Permission check failed\n',
        `pveum role modify ProxyOperator --append 1 --privs "VM.Allocate" && pveum acl modify / ${who} --roles ProxyOperator`,
      ],
    ];
    for (const [call, text, remedy] of remedies) {
      const { facts, message } = refused(call, text);
      assert.equal(facts.remedy, remedy);
      assert.ok(message.endsWith(remedy));
    }
  });

  it('a 403 that only appears in a task has the same class and remedy', () => {
    const end = classifyTaskExit(
      '403 Permission check failed (/storage/local, Datastore.AllocateSpace)',
      { provider: 'lab', what: 'resize scsi0 of VM 110', upid: 'UPID:x', vmid: 110 },
    );
    assert.ok(end.kind === 'failed');
    assert.equal(asWords(end.error), 'Permanent Forbidden provider');
    assert.match(end.error.facts.remedy ?? '', /ProxyOperator .*"Datastore\.AllocateSpace"/);
    assert.equal(end.error.facts.upid, 'UPID:x');
    assert.equal(end.error.facts.vmid, 110);
  });

  it('the lock of a locked VM is a fact, in answers and in tasks', () => {
    assert.equal(failed('setVmConfig', 'VM is locked (backup)\n').facts.lock, 'backup');
    const end = classifyTaskExit('VM is locked (suspending)', { provider: 'lab', what: 'stop' });
    assert.ok(end.kind === 'failed');
    assert.equal(end.error.facts.lock, 'suspending');
  });

  it('a storage or node that Proxmox names is a fact', () => {
    assert.equal(failed('uploadIso', "storage 'seeds' is disabled\n").facts.storage, 'seeds');
    assert.equal(failed('clone', "no such cluster node 'pve7'\n").facts.node, 'pve7');
  });
});

describe('failures known from the source of Proxmox only', () => {
  it('storage and cluster locks of a clone are waited for', () => {
    const texts = [
      "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout",
      "clone failed: cfs-lock 'storage-local-lvm' error: got lock request timeout",
      "access permissions cleanup for VM 100 failed: cfs-lock 'file-user_cfg' error: got lock request timeout",
    ];
    for (const text of texts) {
      const end = classifyTaskExit(text, { provider: 'lab', what: 'clone' });
      assert.ok(end.kind === 'failed');
      assert.equal(asWords(end.error), 'Transient WaitingForLock proxy', text);
    }
  });

  it('a timeout on the list of running tasks may hide a task that was started', () => {
    const text = "can't lock file '/var/log/pve/tasks/.active.lock' - got timeout\n";
    const error = failed('clone', text);
    assert.equal(asWords(error), 'Transient WaitingForLock proxy');
    assert.equal(error.facts.outcomeUnknown, true);
  });

  it('a cluster lock without quorum is lack of quorum', () => {
    const text = "cfs-lock 'storage-shared-images' error: no quorum!";
    const end = classifyTaskExit(text, { provider: 'lab', what: 'destroy' });
    assert.ok(end.kind === 'failed');
    assert.equal(asWords(end.error), 'Transient NoQuorum provider');
  });

  it("a change that could not be hot plugged is not our parameters' fault", () => {
    const error = classifyAnswer(
      { provider: 'lab', call: 'setVmConfig', method: 'PUT', what: 'write cores' },
      {
        status: 400,
        reason: 'Parameter verification failed.',
        message: 'Parameter verification failed.\n',
        errors: { cores: 'hotplug problem - unplug failed\n' },
      },
      peer,
    );
    assert.equal(asWords(error), 'Transient ApiError proxy');
  });

  it("a missing storage is the provider's configuration", () => {
    const error = classifyAnswer(
      { provider: 'lab', call: 'getStorageStatus', method: 'GET', what: 'read storage nosuch' },
      {
        status: 400,
        reason: 'Parameter verification failed.',
        message: null,
        errors: { storage: 'No such storage.' },
      },
      peer,
    );
    assert.equal(asWords(error), 'Permanent StorageUnavailable provider');
    assert.match(error.message, /storage: No such storage\./);
  });

  it("answers of a proxy in front of the API are told apart from Proxmox's", () => {
    assert.equal(asWords(failed('start', 'Not Found', 404)), 'Permanent BadRequest provider');
    assert.equal(asWords(failed('start', 'Too Many Requests', 429)), 'Transient ApiError proxy');
    assert.equal(failed('start', 'Bad Gateway', 502).facts.outcomeUnknown, true);
  });

  it('OK and WARNINGS are success', () => {
    const task = { provider: 'lab', what: 'destroy VM 101' };
    assert.deepEqual(classifyTaskExit('OK', task), { kind: 'ok' });
    assert.deepEqual(classifyTaskExit('WARNINGS: 2', task), { kind: 'warnings', count: 2 });
  });

  it('a very long text is cut', () => {
    assert.ok(failed('start', 'x'.repeat(5_000)).message.length < 700);
  });
});
