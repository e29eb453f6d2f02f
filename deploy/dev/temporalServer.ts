import { Client, Connection } from '@temporalio/client';
import { lastLines, runCommand } from './command.ts';
import type { ProcessSpec } from './managedProcess.ts';
import { UserError } from './program.ts';

/** As the operator's default: design §6. */
export const temporalNamespace = 'egress-proxies';

export interface TemporalPlan {
  temporalPath: string;
  port: number;
  uiPort: number;
  httpPort: number;
  metricsPort: number;
  /** A database file lets the server be killed and started again; without one everything is in memory. */
  dbFile: string | undefined;
  env: NodeJS.ProcessEnv;
}

const describeMs = 2_000;

/** A client of the server at that port. It connects when first used, and again whenever the server comes back. */
export function temporalClient(port: number): Client {
  const connection = Connection.lazy({ address: `127.0.0.1:${port}` });
  return new Client({ connection, namespace: temporalNamespace });
}

/** Temporal's command-line program, set up for one server; returns what it prints. Throws UserError with what it said. */
export type TemporalCli = (...args: readonly string[]) => Promise<string>;

/** Bound to the stack's server and namespace. Throws UserError with the end of what the program said. */
export function temporalCliFor(program: string, port: number): TemporalCli {
  const fixed = [`--address=127.0.0.1:${port}`, `--namespace=${temporalNamespace}`];
  return async (...args) => {
    const result = await runCommand(program, [...args, ...fixed]);
    if (result.code === 0) return result.stdout;
    throw new UserError(`temporal ${args.join(' ')} failed: ${lastLines(result.stderr, 3)}`);
  };
}

/** Temporal's own development server, with its UI. Search attributes are registered by our programs. */
export function temporalSpec(plan: TemporalPlan, client: Client): ProcessSpec {
  return {
    name: 'temporal',
    command: plan.temporalPath,
    args: [
      'server',
      'start-dev',
      '--ip=127.0.0.1',
      `--namespace=${temporalNamespace}`,
      `--port=${plan.port}`,
      `--ui-port=${plan.uiPort}`,
      `--http-port=${plan.httpPort}`,
      `--metrics-port=${plan.metricsPort}`,
      '--log-level=warn',
      '--log-format=json',
      ...(plan.dbFile === undefined ? [] : [`--db-filename=${plan.dbFile}`]),
    ],
    env: plan.env,
    isReady: async () => {
      try {
        await client.connection.withDeadline(Date.now() + describeMs, () =>
          client.workflowService.describeNamespace({ namespace: temporalNamespace }),
        );
        return true;
      } catch {
        return false;
      }
    },
    readyWithinMs: 60_000,
    stopGraceMs: 10_000,
  };
}
