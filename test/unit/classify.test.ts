/** The class of every failure Proxmox VE was seen to give. Expectations come from pve/README's facts, by pattern. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { classifyAnswer, classifyTaskExit } from '../../activities/proxmox/classify.ts';
import type { FailedAnswer } from '../../activities/proxmox/classify.ts';
import type { Attempt } from '../../activities/proxmox/classifyVerdict.ts';
import type { ProviderError } from '../../activities/providerError.ts';
import { capturedErrors } from '../support/captureErrors.ts';
import { expectations } from '../support/classifyExpectations.ts';
import type { Expectation } from '../support/classifyExpectations.ts';
import type { CapturedAnswer, CapturedTask } from '../support/captureErrors.ts';

const captures = fileURLToPath(new URL('../../testdata/pve/9.2/', import.meta.url));
const peer = { address: 'pve1:8006', tokenId: 'proxy-operator@pve!operator' };

const bodySchema = z.looseObject({
  message: z.string().nullish(),
  errors: z.record(z.string(), z.string()).nullish(),
});

function answerOf({ status, reason, body }: CapturedAnswer): FailedAnswer {
  const json = body.startsWith('{') ? bodySchema.parse(JSON.parse(body)) : null;
  return { status, reason, message: json?.message ?? null, errors: json?.errors ?? {} };
}

const seam: [string, RegExp, string][] = [
  ['POST', /\/qemu\/\d+\/clone$/, 'clone'],
  ['PUT', /\/qemu\/\d+\/config/, 'setVmConfig'],
  ['PUT', /\/resize$/, 'resize'],
  ['POST', /\/status\/start$/, 'start'],
  ['POST', /\/status\/stop$/, 'stop'],
  ['DELETE', /\/qemu\/\d+$/, 'destroy'],
  ['POST', /\/upload$/, 'uploadIso'],
  ['DELETE', /\/content\//, 'deleteVolume'],
  ['GET', /\/content$/, 'listIsos'],
  ['GET', /\/storage\/[^/]+\/status$/, 'getStorageStatus'],
  ['GET', /\/agent\//, 'getAgentInterfaces'],
];

function attemptOf(method: string, path: string): Attempt {
  const call = seam.find(([verb, end]) => verb === method && end.test(path))?.[2] ?? 'other';
  const verb = z.enum(['GET', 'POST', 'PUT', 'DELETE']).catch('POST').parse(method);
  return { provider: 'lab', call, method: verb, what: `${method} ${path}`, vmid: 110 };
}

function classified(captured: CapturedAnswer | CapturedTask): ProviderError {
  if (captured.kind === 'answer') {
    return classifyAnswer(attemptOf(captured.method, captured.path), answerOf(captured), peer);
  }
  const end = classifyTaskExit(captured.exitstatus, { provider: 'lab', what: captured.type });
  assert.ok(end.kind === 'failed', `${captured.file}: ${captured.exitstatus} counts as success`);
  return end.error;
}

function textOf(captured: CapturedAnswer | CapturedTask): string {
  if (captured.kind === 'task') return captured.exitstatus;
  const { reason, errors } = answerOf(captured);
  const parameters = Object.entries(errors).map(([key, text]) => `${key}: ${text}`);
  return [reason, ...parameters].join(' ');
}

function expected(captured: CapturedAnswer | CapturedTask): Expectation | undefined {
  const isAnswer = captured.kind === 'answer';
  const status = isAnswer ? captured.status : 'task';
  const call = isAnswer ? attemptOf(captured.method, captured.path).call : captured.type;
  const text = textOf(captured);
  return expectations.find(
    (row) =>
      row.status === status && (row.call === undefined || row.call === call) && row.says.test(text),
  );
}

function asWords({ errorClass, facts }: ProviderError): string {
  return `${errorClass} ${facts.reason} ${facts.scope}`;
}

describe('classes of captured failures', () => {
  const all = capturedErrors(captures);

  it('every failure in the captures has an expectation and every expectation a failure', () => {
    assert.ok(all.length > 300, `only ${all.length} failures found in ${captures}`);
    const without = all.filter((captured) => expected(captured) === undefined);
    assert.deepEqual(
      without.map((captured) => `${captured.file}: ${textOf(captured)}`),
      [],
    );
    const met = new Set(all.map(expected));
    assert.deepEqual(
      expectations.filter((row) => !met.has(row)).map((row) => String(row.says)),
      [],
    );
  });

  for (const row of expectations) {
    const whom = row.call === undefined ? '' : ` of ${row.call}`;
    it(`${row.status}${whom} ${row.says.source} is ${row.becomes}`, () => {
      for (const captured of all.filter((one) => expected(one) === row)) {
        const error = classified(captured);
        assert.equal(asWords(error), row.becomes, captured.file);
        assert.equal(error.facts.goBack, row.goBack, captured.file);
        if (captured.kind === 'task') continue;
        const unknown = captured.method !== 'GET' && row.unknown === true ? true : undefined;
        assert.equal(error.facts.outcomeUnknown, unknown, `${captured.file}: outcomeUnknown`);
        assert.equal(error.facts.httpStatus, captured.status, captured.file);
      }
    });
  }

  it('every 403 that names privilege and path ends with the line that grants it', () => {
    const refused = all.filter((one) => /Permission check failed \(\//.test(textOf(one)));
    assert.ok(refused.length > 10);
    for (const captured of refused) {
      const { message, facts } = classified(captured);
      const [, path = '', anyOf = ''] = /\((\/[^,]*), ([^)]+)\)/.exec(textOf(captured)) ?? [];
      const remedy = facts.remedy ?? '';
      assert.ok(message.endsWith(remedy), `${captured.file}: ${message}`);
      assert.ok(message.includes(path) && message.includes(anyOf), `${captured.file}: ${message}`);
      const [, granted = ''] =
        /^pveum role modify \S+ --append 1 --privs "([^"]+)" && /.exec(remedy) ?? [];
      assert.ok(
        anyOf.split('|').includes(granted.split(' ')[0] ?? ''),
        `${captured.file}: ${remedy}`,
      );
      const [, where = ''] = / && pveum acl modify (\S+) --users \S+/.exec(remedy) ?? [];
      assert.ok(where === '/' || where === path, `${captured.file}: ${remedy}`);
    }
  });

  it('every failure that a person must mend at the provider says how', () => {
    for (const captured of all) {
      const { errorClass, facts } = classified(captured);
      if (errorClass !== 'Permanent' || facts.scope !== 'provider') continue;
      // A refusal that names nothing: Proxmox hides what was missing (pve/README 6).
      if (facts.reason === 'Forbidden' && !textOf(captured).includes('(/')) continue;
      assert.ok((facts.remedy ?? '') !== '', `${captured.file}: ${textOf(captured)}`);
    }
  });

  it("every message names the attempt, the provider and the answer in Proxmox's own words", () => {
    for (const captured of all) {
      const { message } = classified(captured);
      const what = captured.kind === 'task' ? captured.type : `${captured.method} ${captured.path}`;
      assert.ok(message.startsWith(`${what} (provider lab): `), `${captured.file}: ${message}`);
      const words = captured.kind === 'task' ? captured.exitstatus : captured.reason;
      assert.ok(message.includes(words.slice(0, 60)), `${captured.file}: ${message}`);
      assert.ok(!message.includes('\n'), captured.file);
    }
  });
});
