import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Reason } from '../../workflows/contract/errors.ts';
import type { StepFailure } from '../../workflows/failures.ts';
import type { Trouble } from '../../workflows/state.ts';
import { nextTrouble } from '../../workflows/trouble.ts';

const minuteMs = 60_000;

function failing(reason: Reason): StepFailure {
  return {
    kind: 'failed',
    errorClass: 'Transient',
    message: reason,
    facts: { reason, scope: 'provider' },
  };
}

/** A step that fails for these reasons, a minute apart. */
function after(...reasons: readonly Reason[]): Trouble | null {
  let trouble: Trouble | null = null;
  for (const [minute, reason] of reasons.entries()) {
    trouble = nextTrouble(trouble, 'resolvePlacement', failing(reason), minute * minuteMs, false);
  }
  return trouble;
}

describe('trouble began', () => {
  const cases: readonly [Reason[], number][] = [
    [['Unreachable', 'Unreachable', 'Unreachable'], 0],
    [['Unreachable', 'Unauthorized'], 1],
    // What a worker without the provider says, and what its queue without a poller says.
    [['ProviderUnknown', 'ProviderNotServed'], 0],
    [['ProviderNotServed', 'ProviderUnknown', 'ProviderNotServed'], 0],
    [['ProviderUnknown', 'Unreachable', 'ProviderUnknown'], 2],
  ];
  for (const [reasons, minute] of cases) {
    it(`in minute ${minute} when its reasons were ${reasons.join(', ')}`, () => {
      const trouble = after(...reasons);
      assert.equal(trouble?.sinceMs, minute * minuteMs);
      assert.equal(trouble.reason, reasons.at(-1));
    });
  }
});
