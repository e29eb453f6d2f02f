/** What a step may use. One argument, built once by the worker: no singletons, no import that connects. */
import type { Logger } from 'pino';
import type { ProviderConfig } from '../api/providersConfig.ts';
import type { AbsenceAlarms } from './kubernetes/absenceAlarm.ts';
import type { ProxyRecords } from './kubernetes/records.ts';
import type { TakeSurvey } from './kubernetes/survey.ts';
import type { ProviderHealthRecords } from './kubernetes/healthRecords.ts';
import type { CallContext, Lane, ProxmoxApi } from './proxmox/api.ts';

export interface Clock {
  now(): number;
  /** Resolves after `ms`, rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Poll cadences, defaults in contract/budgets.ts; tests shorten them. */
export interface Pace {
  taskMinMs: number;
  taskMaxMs: number;
  runningMs: number;
  agentMs: number;
  /** Multiplies every wait budget; 1 in production. */
  budgetScale: number;
}

/** The providers as configured right now; each accepted config is a new frozen snapshot (design §2). */
export interface Providers {
  /** Throws Transient `ProviderUnknown`, naming the configured ones. */
  config(name: string): ProviderConfig;
  names(): string[];
  /** Client of one provider, bound to one attempt. Throws Transient `ProviderUnknown`. */
  api(name: string, call: CallContext): ProxmoxApi;
}

/** `Providers` with a socket of its own for each check and for the watch (design §4). */
export interface LaneProviders extends Providers {
  /** Throws Transient `ProviderUnknown`. */
  laneApi(name: string, lane: Lane, call: CallContext): ProxmoxApi;
}

export interface Installation {
  id: string;
  /** First 6 hex digits of SHA-256(id), part of every VM name. */
  hex: string;
  /** Ids whose VMs are adopted and re-marked (`--also-installation`). */
  also: readonly string[];
}

export interface StepDeps {
  providers: Providers;
  kubernetes: ProxyRecords;
  /** All Proxies, from the API server itself. */
  survey: TakeSurvey;
  /** `MassAbsence` alarms by provider. */
  alarms: AbsenceAlarms;
  installation: Installation;
  clock: Clock;
  pace: Pace;
  log: Logger;
}

/** What the steps of the `provider` workflow use besides. */
export interface HealthDeps extends StepDeps {
  providers: LaneProviders;
  health: ProviderHealthRecords;
  /** Flags `--provider-check-interval` and `--provider-check-timeout`. */
  checks: { intervalMs: number; timeoutMs: number };
  /** Tells the provider's Proxies to try again. Never throws. */
  wakeProxies(provider: string): Promise<void>;
}

/** One attempt of one step. */
export interface StepContext {
  call: CallContext;
  /** Epoch ms of the first scheduling: budgets count from here, whatever attempt this is. */
  scheduledAtMs: number;
  heartbeat(details?: unknown): void;
  log: Logger;
}

/** A step: reads facts, changes at most one thing, returns facts. */
export type Step<Input, Result> = (
  deps: StepDeps,
  context: StepContext,
  input: Input,
) => Promise<Result>;
