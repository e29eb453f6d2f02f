/** Checks one node of a provider as a user of it would meet it: token, API, node, seed storage, templates, privileges. */
import type { ProxmoxConfig } from '../api/proxmoxConfig.ts';
import type {
  CheckNodeInput,
  CheckNodeResult,
  CheckSettings,
  TargetHealth,
} from '../workflows/contract/providerSteps.ts';
import type { HealthDeps, StepContext } from './deps.ts';
import {
  judgeTemplates,
  needsOn,
  problemOf,
  storageProblem,
  templatesFor,
  type CheckStage,
  type TargetProblem,
} from './facts/target.ts';
import type { ProxmoxApi } from './proxmox/api.ts';
import { grantMissing } from './proxmox/grants.ts';
import { describeMissing, missingPrivileges, type Need } from './proxmox/privileges.ts';
import { ProviderError } from './providerError.ts';

/**
 * What is wrong with the node is a result, not a failure. Throws Transient `ProviderUnknown` only, and the signal's
 * reason when the step itself is to end.
 */
export const checkNode = async (
  deps: HealthDeps,
  context: StepContext,
  { provider, node }: CheckNodeInput,
): Promise<CheckNodeResult> => {
  const { proxmox } = deps.providers.config(provider);
  const settings: CheckSettings = { address: proxmox.url, nodes: proxmox.nodes, ...deps.checks };
  if (!proxmox.nodes.includes(node)) return { target: null, settings };
  const startedMs = deps.clock.now();
  const bound = AbortSignal.timeout(settings.timeoutMs);
  const signal = AbortSignal.any([context.call.signal, bound]);
  const api = deps.providers.laneApi(provider, `check/${node}`, { ...context.call, signal });
  const check = new NodeCheck(api, proxmox, node);
  const problem = await check.run().catch((error: unknown) => {
    context.call.signal.throwIfAborted();
    if (bound.aborted) return timedOut(check.stage, settings.timeoutMs, proxmox.url);
    if (error instanceof ProviderError) return check.explain(problemOf(error, check.stage));
    throw error;
  });
  const checkedAt = new Date(deps.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  const latencyMs = deps.clock.now() - startedMs;
  const target: TargetHealth = {
    name: node,
    address: proxmox.url,
    ready: problem === null,
    reason: problem?.reason ?? 'Reachable',
    message: problem?.message ?? '',
    latencyMs,
    checkedAt,
    details: check.details,
  };
  const { ready, reason } = target;
  context.log.debug({ node, ready, reason, latency: latencyMs }, 'proxmox node checked');
  return { target, settings };
};

/** One check under way: what it met so far stays when it fails. */
class NodeCheck {
  readonly details: Record<string, string> = {};
  stage: CheckStage = 'token';
  readonly #api: ProxmoxApi;
  readonly #config: ProxmoxConfig;
  readonly #node: string;
  #missing: Need[] = [];

  constructor(api: ProxmoxApi, config: ProxmoxConfig, node: string) {
    this.#api = api;
    this.#config = config;
    this.#node = node;
    this.details['isoStorage'] = config.isoStorage;
  }

  /** The requests of the specification in its order, and the token's privileges as soon as the API answers. */
  async run(): Promise<TargetProblem | null> {
    const { details } = this;
    details['tokenID'] = await this.#api.tokenId();
    this.stage = 'version';
    const { version } = await this.#api.getVersion();
    details['pveVersion'] = version;
    this.stage = 'privileges';
    const needs = needsOn(this.#config, this.#node, version);
    this.#missing = missingPrivileges(await this.#api.listPermissions(), needs);
    if (this.#missing.length > 0) details['missingPrivileges'] = describeMissing(this.#missing);
    this.stage = 'node';
    const { kernel } = await this.#api.getNodeStatus(this.#node);
    if (kernel !== null) details['kernel'] = kernel;
    return (await this.#checkStorage()) ?? (await this.#checkTemplates()) ?? this.#forbidden();
  }

  /** A refusal names one privilege; the whole list is more use. */
  explain(problem: TargetProblem): TargetProblem {
    return problem.reason === 'Forbidden' ? (this.#forbidden() ?? problem) : problem;
  }

  async #checkStorage(): Promise<TargetProblem | null> {
    this.stage = 'storage';
    const { isoStorage } = this.#config;
    const status = await this.#api.getStorageStatus(this.#node, isoStorage);
    const problem = storageProblem(isoStorage, this.#node, status);
    if (problem === null) {
      this.details['isoStorageAvailGiB'] = (status.availBytes / 1024 ** 3).toFixed(1);
    }
    return problem;
  }

  async #checkTemplates(): Promise<TargetProblem | null> {
    this.stage = 'templates';
    const templates = templatesFor(this.#config, this.#node);
    const { found, problem } = judgeTemplates(templates, await this.#api.listVms());
    this.details['templates'] = `${found}/${templates.length}`;
    // A listing leaves out without a word what the token may not see.
    return problem === null ? null : (this.#forbidden() ?? problem);
  }

  #forbidden(): TargetProblem | null {
    if (this.#missing.length === 0) return null;
    const { tokenID = null, missingPrivileges: lacks = '' } = this.details;
    const remedy = grantMissing(this.#missing, this.#config.isoStorage, tokenID);
    return { reason: 'Forbidden', message: `the token ${tokenID} lacks ${lacks}; ${remedy}` };
  }
}

const stageNames: Record<CheckStage, string> = {
  token: 'reading the token file',
  version: 'asking for the version',
  privileges: "listing the token's privileges",
  node: 'reading the status of the node',
  storage: 'reading the status of the storage',
  templates: 'listing VMs',
};

function timedOut(stage: CheckStage, timeoutMs: number, url: string): TargetProblem {
  const what = stageNames[stage];
  const message = `the check ran out of its ${timeoutMs / 1_000} s while ${what}; is ${url} slow, or the link to it?`;
  return { reason: 'Timeout', message };
}
