/** The command lines of docs/operations.md, run on a stack as a person types them. */
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { programEnvironment } from '../../../deploy/dev/programs.ts';
import { runCommand } from '../../../deploy/dev/command.ts';
import { findTool } from '../../../deploy/dev/tools.ts';
import { checkout, read } from '../../support/pages.ts';
import type { SystemStack } from './stack.ts';

/** A command line, and the heading it stands under. */
export interface CommandLine {
  heading: string;
  text: string;
}

/** What no stack of ours has: commands of a node of Proxmox VE, and Temporal's older CLI. */
const elsewhere = /^(qm|pvesm|pvecm|pveum|ha-manager|tctl|make) /;
const commandMs = 120_000;

/** Every line of the blocks of shell in the runbook that can be run here, in order. */
export const commandLines: readonly CommandLine[] = linesOf(read('docs/operations.md').text);

function linesOf(text: string): CommandLine[] {
  const found: CommandLine[] = [];
  let heading = '';
  let language: string | null = null;
  for (const line of text.split('\n')) {
    const [, fence] = /^```(\w*)$/.exec(line) ?? [];
    if (fence !== undefined) language = language === null ? fence : null;
    else if (language === null) heading = /^##+ (.*)$/.exec(line)?.[1] ?? heading;
    else if (language === 'sh' && line.trim() !== '' && !elsewhere.test(line))
      found.push({ heading, text: line });
  }
  return found;
}

export interface CommandAnswer {
  code: number;
  /** Standard output and error, one after the other. */
  text: string;
}

/**
 * Runs lines in one shell that ends at the first failure. `words` fills the page's placeholders and names; throws when one
 * is left that nobody filled.
 */
export async function runLines(
  stack: SystemStack,
  lines: readonly string[],
  words: Record<string, string>,
): Promise<CommandAnswer> {
  const common = {
    '<provider>': 'proxmox-local',
    '<controller>:8090': `127.0.0.1:${stack.ports.discovery}`,
    '<controller>:8081': `127.0.0.1:${stack.ports.controllerHealth}`,
  };
  let script = lines.join('\n');
  for (const [word, value] of Object.entries({ ...words, ...common }))
    script = script.replaceAll(word, value);
  const [left] = /<[a-z]+>/.exec(script) ?? [];
  if (left !== undefined) throw new Error(`nothing stands for ${left} in ${script}`);
  const { code, stdout, stderr } = await runCommand('bash', ['--norc', '-eu', '-c', script], {
    cwd: checkout,
    env: await environment(stack),
    timeoutMs: commandMs,
  });
  return { code, text: stdout + stderr };
}

/** As a person has it who reached both servers: programs on PATH, KUBECONFIG and TEMPORAL_ADDRESS. */
async function environment(stack: SystemStack): Promise<NodeJS.ProcessEnv> {
  const programs = join(stack.folder.path, 'programs');
  if (!existsSync(programs)) {
    mkdirSync(programs);
    symlinkSync((await findTool('kubectl')).path, join(programs, 'kubectl'));
    symlinkSync(stack.temporalProgram, join(programs, 'temporal'));
  }
  return programEnvironment({
    PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    HOME: stack.folder.path,
    KUBECONFIG: stack.kubernetes.kubeconfigs.admin,
    TEMPORAL_ADDRESS: `127.0.0.1:${stack.ports.temporal}`,
  });
}
