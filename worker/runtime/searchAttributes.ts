/** Registration of the search attributes of design §6. A run that used a missing one would be stuck for ever. */
import type { Connection } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { searchAttributeTypes } from '../../workflows/contract/messages.ts';
import { grpcCodeOf, grpcCodes } from './grpc.ts';

/** Numbers of Temporal's enum IndexedValueType, which the SDK does not export. */
const typeCodes = { KEYWORD: 2, INT: 3 } as const;

/**
 * Registers all of `searchAttributeTypes`. `true`: all exist with the right type and may be used. Where registration is
 * refused (Temporal Cloud, a restricted key) they may still exist; if not, one warning says how to make them.
 */
export async function registerSearchAttributes(
  connection: Connection | NativeConnection,
  namespace: string,
  log: Logger,
): Promise<boolean> {
  const wanted = wantedTypes();
  let refusal: unknown;
  try {
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: wanted });
  } catch (error) {
    refusal = error;
  }
  const problems = await problemsOf(connection, namespace, wanted, refusal);
  if (problems.length === 0) return true;
  log.warn(
    {
      err: refusal,
      problems,
      commands: Object.entries(searchAttributeTypes).map(
        ([name, type]) =>
          `temporal operator search-attribute create --namespace ${namespace} --name ${name} --type ${type === 'INT' ? 'Int' : 'Keyword'}`,
      ),
    },
    'search attributes not usable, workflows run without them',
  );
  return false;
}

function wantedTypes(): Record<string, number> {
  return Object.fromEntries(
    Object.entries(searchAttributeTypes).map(([name, type]) => [name, typeCodes[type]]),
  );
}

/** Asks what exists: registering an existing name with another type is not refused (tried on the dev server). */
async function problemsOf(
  connection: Connection | NativeConnection,
  namespace: string,
  wanted: Record<string, number>,
  refusal: unknown,
): Promise<string[]> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace,
    });
    return Object.entries(wanted).flatMap(([name, code]) => {
      const found: number | null | undefined = customAttributes[name];
      if (found === undefined || found === null) return [`${name} does not exist`];
      return found === code ? [] : [`${name} has another type`];
    });
  } catch (error) {
    // The time-skipping test server can add but not list.
    const unlisted = grpcCodeOf(error) === grpcCodes.unimplemented;
    if (unlisted && refusal === undefined) return [];
    return [error instanceof Error ? error.message : String(error)];
  }
}
