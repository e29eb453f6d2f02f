/**
 * History JSON → the message that `Worker.runReplayHistory` takes. The SDK converts JSON itself, but with a copy of
 * protobufjs that is not the one its message types were made with when npm installs several («type must be a Type»);
 * here the converter comes from where the types come from, so it works either way.
 */
import { createRequire } from 'node:module';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import type { RecordedHistory } from './histories.ts';

type FromJson = (
  type: unknown,
  json: unknown,
  options: { ignoreUnknownFields: boolean },
) => History;
type ProtobufRoot = { lookupType: (name: string) => unknown };

const here = createRequire(import.meta.url);
const besideTypes = createRequire(here.resolve('@temporalio/proto'));

/** Throws TypeError naming the field when the JSON is not a history. */
export function historyMessage(history: RecordedHistory): History {
  const converter: unknown = besideTypes('protobufjs/ext/protojson');
  const root: unknown = here('@temporalio/proto');
  if (!isConverter(converter) || !isRoot(root)) {
    throw new Error('@temporalio/proto or its protobufjs changed shape; see historyProto.ts');
  }
  const type = root.lookupType('temporal.api.history.v1.History');
  return converter.fromJson(type, history, { ignoreUnknownFields: true });
}

function isConverter(value: unknown): value is { fromJson: FromJson } {
  return typeof value === 'object' && value !== null && 'fromJson' in value;
}

function isRoot(value: unknown): value is ProtobufRoot {
  return typeof value === 'object' && value !== null && 'lookupType' in value;
}
