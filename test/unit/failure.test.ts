/** What of a step's error reaches Temporal: its class, its message and plain facts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  ApplicationFailure,
  ApplicationFailureCategory,
  CancelledFailure,
} from '@temporalio/common';
import { toFailure } from '../../activities/failure.ts';
import { NotYet, permanent, ProviderError, transient } from '../../activities/providerError.ts';
import { errorClasses } from '../../workflows/contract/errors.ts';

function applicationFailure(error: unknown): ApplicationFailure {
  const failure = toFailure(error, false);
  assert.ok(failure instanceof ApplicationFailure, failure.name);
  return failure;
}

describe('the error of a step', () => {
  for (const errorClass of errorClasses) {
    it(`keeps its class ${errorClass}, its words and its facts, and is not repeated by Temporal`, () => {
      const facts = {
        reason: 'ApiError',
        scope: 'provider',
        vmid: 100_123,
        node: 'pv1-1',
      } as const;
      const cause = new Error('what a library was given: CANARY');
      const failure = applicationFailure(
        new ProviderError(errorClass, 'VM 100123: no', facts, cause),
      );
      assert.equal(failure.type, errorClass);
      assert.equal(failure.message, 'VM 100123: no');
      assert.deepEqual(failure.details, [facts]);
      assert.equal(failure.nonRetryable, true);
      const { cause: kept, stack } = failure;
      assert.deepEqual([kept, stack], [undefined, '']);
    });
  }

  it('of a class from its source is not looked at again, whatever its text says', () => {
    const text = "VM is locked (backup); Configuration file 'x.conf' does not exist";
    assert.equal(applicationFailure(permanent('OwnershipConflict', text)).type, 'Permanent');
    assert.equal(applicationFailure(transient('VmVanished', text)).type, 'Transient');
  });

  it('that nobody foresaw is Transient, and its text stays out of the history', () => {
    const failure = applicationFailure(new TypeError('cannot read CANARY'));
    assert.equal(failure.type, 'Transient');
    assert.deepEqual(failure.details, [{ reason: 'Internal', scope: 'proxy' }]);
    assert.equal(failure.message, 'internal error: TypeError');
  });

  it('of a poll that has nothing yet is benign and asked again at its own pace', () => {
    const failure = applicationFailure(new NotYet('booting', 5_000));
    assert.equal(failure.type, 'NotYet');
    assert.equal(failure.nonRetryable, false);
    assert.equal(failure.nextRetryDelay, 5_000);
    assert.equal(failure.stack, '', 'it is read by people, as last failure of a pending step');
    assert.equal(failure.category, ApplicationFailureCategory.BENIGN);
  });

  it('of a cancelled attempt is the cancellation, whatever it met', () => {
    assert.ok(toFailure(new Error('aborted'), true) instanceof CancelledFailure);
  });
});
