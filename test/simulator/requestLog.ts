import type { RawParams } from './schema.ts';

/** One line of the request log. */
export interface SeenRequest {
  /** Epoch ms at which the request was complete. */
  time: number;
  node: string;
  method: string;
  /** Path below /api2/json, decoded. */
  path: string;
  /** Query and form parameters, without path variables and file contents. */
  params: RawParams;
  /** `user@realm!token`, or `null` when authentication failed. */
  token: string | null;
  /** 0 when the connection was cut or nothing was answered. */
  status: number;
  reason: string;
  durationMs: number;
  /** `false` while an answer is being worked on. */
  answered: boolean;
}

/** The log keeps the last requests, for days if need be. */
const REMEMBERED = 50_000;

export function remember(seen: SeenRequest[], entry: SeenRequest): void {
  if (seen.length >= REMEMBERED) seen.splice(0, REMEMBERED / 10);
  seen.push(entry);
}
