/** The providers config (design §2): a YAML file in, one frozen snapshot or all of its problems out. */
import { z } from 'zod';
import { formatProblem, problemsOf, type Problem } from './configProblems.ts';
import { ruleProblems } from './configRules.ts';
import { readYaml } from './configYaml.ts';
import { providerNamePattern } from './proxySpec.ts';
import { proxmoxConfigSchema, type ProxmoxConfig } from './proxmoxConfig.ts';

const providerName = z
  .string()
  .regex(
    new RegExp(providerNamePattern),
    'must be at most 40 lowercase letters, digits and dashes, beginning and ending with a letter or digit',
  );

/** The file as a whole. */
export const providersConfigSchema = z.strictObject({
  providers: z.array(
    z.strictObject({
      name: providerName.describe(
        'Name that `spec.provider` of a Proxy uses, and name of the ProviderHealth. Not that of another provider with `-wait` behind it.',
      ),
      type: z
        .literal('proxmox')
        .describe('`proxmox`; the settings stand under the key of that name.'),
      proxmox: proxmoxConfigSchema,
    }),
  ),
});

/** One configured cluster, all defaults applied. */
export interface ProviderConfig {
  readonly name: string;
  readonly type: 'proxmox';
  readonly proxmox: ProxmoxConfig;
}

/** One accepted config; never changes, the next edit is another snapshot. */
export interface ProvidersConfig {
  readonly providers: readonly ProviderConfig[];
}

/** A config that is not accepted: the file's name and every problem found in it. */
export class ConfigError extends Error {
  readonly fileName: string;
  readonly problems: readonly string[];

  constructor(fileName: string, problems: readonly string[]) {
    super(`${fileName} is not accepted:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.fileName = fileName;
    this.problems = problems;
  }
}

/**
 * Reads the text of a providers config. `fileName` is for messages only.
 * @throws ConfigError with every problem: those of YAML by line, else those of the content by path.
 */
export function loadProvidersConfig(text: string, fileName: string): ProvidersConfig {
  const yaml = readYaml(text);
  if (!yaml.ok) throw new ConfigError(fileName, yaml.problems);
  const result = providersConfigSchema.safeParse(yaml.value);
  const problems = [
    ...(result.success ? [] : problemsOf(providersConfigSchema, yaml.value, result.error)),
    ...ruleProblems(yaml.value),
  ].sort((a, b) => providerIndex(a) - providerIndex(b));
  if (problems.length > 0 || !result.success) {
    throw new ConfigError(fileName, problems.map(formatProblem));
  }
  return deepFreeze(result.data);
}

function providerIndex({ path }: Problem): number {
  return typeof path[1] === 'number' ? path[1] : -1;
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
