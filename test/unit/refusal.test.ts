import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refused } from '../../activities/kubernetes/refusal.ts';

const attempt = {
  verb: 'create',
  object: 'ProviderHealth made',
  rule: 'providerhealths: create',
} as const;

function remedyOf(message: string): string | undefined {
  return refused(attempt, { status: 403, body: { message } }).facts.remedy;
}

describe('what helps when Kubernetes forbids a request', () => {
  it('is the rule that the role lacks', () => {
    assert.match(
      remedyOf('User "worker" cannot create resource') ?? '',
      /«providerhealths: create»/,
    );
  });

  it('is no rule while the place is being deleted: no right would change that', () => {
    const remedy = remedyOf('create not allowed while custom resource definition is terminating');
    assert.equal(remedy, 'It is being deleted, and takes nothing new meanwhile.');
  });
});
