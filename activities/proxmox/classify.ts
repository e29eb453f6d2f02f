/**
 * Every answer of Proxmox VE that is a failure gets its class here, once. With its parts (classifyTexts.ts,
 * grants.ts, and classifyTransport.ts for no answer at all) the only place that looks at texts.
 * Rules: specification *Error classes* and design §5; sources: pve/README, api-facts, testdata/pve/9.2.
 */
import type { Reason } from '../../workflows/contract/errors.ts';
import type { ProviderError } from '../providerError.ts';
import { matchText } from './classifyTexts.ts';
import { forbidden } from './grants.ts';
import { failure, outOfReach, shorten, withOutcome } from './classifyVerdict.ts';
import type { Attempt, Peer, Verdict } from './classifyVerdict.ts';

/** An answer with status 400 or above. */
export interface FailedAnswer {
  status: number;
  /** Reason phrase of the status line: the first line of the message (pve/README 1, 2). */
  reason: string;
  /** `message` of the body, where there was one. */
  message: string | null;
  /** `errors` of a 400: parameter to text. */
  errors: Readonly<Record<string, string>>;
}

/** How a Proxmox task ended. */
export type TaskEnd =
  { kind: 'ok' } | { kind: 'warnings'; count: number } | { kind: 'failed'; error: ProviderError };

/** Class of an answer with a status of 400 or above. */
export function classifyAnswer(tried: Attempt, answer: FailedAnswer, peer: Peer): ProviderError {
  const text = answerText(answer);
  const verdict = judgeAnswer(tried, answer, text, peer);
  const unknown = tried.method !== 'GET' && verdict.facts.outcomeUnknown === true;
  return failure(tried, `Proxmox answered ${answer.status} ${text}`.trimEnd(), {
    errorClass: verdict.errorClass,
    facts: { ...verdict.facts, httpStatus: answer.status, outcomeUnknown: unknown },
  });
}

/**
 * How a task ended, from its `exitstatus` (pve/README 11, 34, 44). `what` says what the task was for. Texts mean
 * what they mean in synchronous answers; all others are Transient `TaskFailed` with Proxmox's text.
 */
export function classifyTaskExit(
  exitstatus: string,
  task: { provider: string; what: string; upid?: string; vmid?: number; call?: string },
): TaskEnd {
  if (exitstatus === 'OK') return { kind: 'ok' };
  const warnings = /^WARNINGS: (\d+)$/.exec(exitstatus);
  if (warnings !== null) return { kind: 'warnings', count: Number(warnings[1]) };
  const tried: Attempt = { call: '', ...task, method: 'GET' };
  const ended = `its task ended with «${shorten(exitstatus)}»`;
  // A task may fail on a check that others do up front: «403 Permission check failed (…)» (pve/README 11).
  const asAnswer = /^(?<status>4\d\d) (?<reason>.+)$/s.exec(exitstatus);
  if (asAnswer?.groups?.status === '403') {
    const verdict = forbidden(tried, asAnswer.groups.reason ?? '', null);
    return { kind: 'failed', error: failure(tried, ended, verdict) };
  }
  const known = judgeText(tried, exitstatus);
  const verdict: Verdict = known ?? {
    errorClass: 'Transient',
    facts: { reason: 'TaskFailed', scope: 'proxy' },
  };
  return { kind: 'failed', error: failure(tried, ended, verdict) };
}

function judgeAnswer(tried: Attempt, answer: FailedAnswer, text: string, peer: Peer): Verdict {
  const { status } = answer;
  if (status === 401) {
    const remedy = `check the token file, and the token on a node: ${tokenCommand(peer.tokenId)}`;
    return {
      errorClass: 'Permanent',
      facts: { reason: 'Unauthorized', scope: 'provider', remedy },
    };
  }
  if (status === 403) {
    const verdict = forbidden(tried, answer.message ?? answer.reason, peer.tokenId);
    return withOutcome(verdict, writesInPieces(tried));
  }
  if (status === 400) return judgeBadRequest(tried, answer, text);
  // Connecting to the node behind the entry node failed: nothing reached it (api-facts 1.2).
  if (status === 595) {
    return withOutcome(outOfReach('Unreachable', tried, nodeRemedy(tried)), false);
  }
  if (status > 595 && status < 600) return outOfReach('Unreachable', tried, nodeRemedy(tried));
  if (status === 501) return withOutcome(otherAnswer(), false);
  if (status >= 500) return judgeText(tried, text) ?? otherAnswer();
  // A proxy in front of pveproxy; Proxmox itself has no such answers (api-facts 1.6).
  if (status === 408 || status === 425 || status === 429) return otherAnswer();
  if (status >= 400) {
    const remedy = `is ${peer.address} a Proxmox VE API?`;
    return {
      errorClass: 'Permanent',
      facts: { reason: 'BadRequest', scope: 'provider', remedy },
    };
  }
  return withOutcome(otherAnswer(), false);
}

function judgeBadRequest(tried: Attempt, answer: FailedAnswer, text: string): Verdict {
  const { errors } = answer;
  // Unknown task: rotated away, another node's, or never there. It says nothing about success (api-facts 9.31).
  if (errors.upid?.startsWith('no such task')) {
    return {
      errorClass: 'Transient',
      facts: { reason: 'TaskUnknown', scope: 'proxy', goBack: true },
    };
  }
  if (errors.storage !== undefined && /^No such storage\.|support/.test(errors.storage)) {
    const remedy = 'compare storages and their content with: pvesm status';
    return {
      errorClass: 'Permanent',
      facts: { reason: 'StorageUnavailable', scope: 'provider', remedy },
    };
  }
  if (errors.vmid?.includes('already exists')) {
    return {
      errorClass: 'Transient',
      facts: { reason: 'LostRace', scope: 'proxy', goBack: true },
    };
  }
  // Not about our parameters but about the running VM (api-facts 5.12).
  if (/hotplug problem|unable to apply pending change/.test(text)) return otherAnswer();
  const facts = { reason: 'BadRequest', scope: 'proxy' } as const;
  return withOutcome({ errorClass: 'Permanent', facts }, writesInPieces(tried));
}

/** `null` for a text without a rule. */
function judgeText(tried: Attempt, text: string): Verdict | null {
  const found = matchText(text);
  if (found === null) return null;
  const { rule } = found;
  const { errorClass, scope, reason, remedy, goBack } = rule;
  // A missing source is the template's trouble, not the VM's; it may have been migrated a moment ago.
  if (tried.call === 'clone' && errorClass === 'NotFound') {
    const facts = { reason: 'TemplateUnusable', scope: 'provider', goBack: true } as const;
    return withOutcome({ errorClass: 'Transient', facts: { ...facts, ...found.facts } }, false);
  }
  const nothingDone = rule.refused === true && (!writesInPieces(tried) || early.has(reason));
  return {
    errorClass,
    facts: {
      reason,
      scope,
      outcomeUnknown: !nothingDone,
      ...(remedy === undefined ? {} : { remedy }),
      ...(goBack === undefined ? {} : { goBack }),
      ...found.facts,
    },
  };
}

/** A config write applies its keys one by one, so a late refusal leaves earlier keys written (api-facts 5.12). */
function writesInPieces(tried: Attempt): boolean {
  return tried.call === 'setVmConfig';
}
/** Refusals that a config write meets before its first key. */
const early: ReadonlySet<Reason> = new Set([
  'WaitingForLock',
  'VmVanished',
  'ConfigChanged',
  'NoQuorum',
  'Unreachable',
]);

function otherAnswer(): Verdict {
  return {
    errorClass: 'Transient',
    facts: { reason: 'ApiError', scope: 'proxy', outcomeUnknown: true },
  };
}

function nodeRemedy(tried: Attempt): string {
  return `is node ${tried.node ?? '(the entry node)'} up, with pveproxy and pvedaemon running?`;
}

function tokenCommand(tokenId: string | null): string {
  return `pveum user token list ${tokenId === null ? '<user>@<realm>' : (tokenId.split('!')[0] ?? '')}`;
}

/** Proxmox's own words: the body's message where there is one, with the parameters a 400 complains about. */
function answerText(answer: FailedAnswer): string {
  const head = (answer.message ?? answer.reason).trim();
  const parameters = Object.entries(answer.errors).map(([key, text]) => `${key}: ${text.trim()}`);
  return shorten([head, ...parameters].filter((part) => part !== '').join(' '));
}
