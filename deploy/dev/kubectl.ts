import { join } from 'node:path';
import { lastLines, runCommand } from './command.ts';
import type { CommandOptions, CommandResult } from './command.ts';
import { UserError } from './program.ts';

/** kubectl of one stack, as its administrator. */
export interface Kubectl {
  /** Path of the program, for people to copy. */
  readonly program: string;
  /** Runs it to its end, whatever its exit code. */
  run(args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** Runs it and returns its output; throws UserError with what it said when it fails. */
  must(args: readonly string[], options?: CommandOptions): Promise<string>;
}

/** The discovery cache is the stack's own: kubectl keeps it by address, and another stack had this address before. */
export function kubectlFor(program: string, kubeconfig: string, folder: string): Kubectl {
  const fixed = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${join(folder, 'kubectl-cache')}`];
  const run = (args: readonly string[], options?: CommandOptions): Promise<CommandResult> =>
    runCommand(program, [...fixed, ...args], options);
  return {
    program,
    run,
    must: async (args, options) => {
      const result = await run(args, options);
      if (result.code === 0) return result.stdout;
      throw new UserError(`kubectl ${args.join(' ')} failed: ${lastLines(result.stderr, 5)}`);
    },
  };
}
