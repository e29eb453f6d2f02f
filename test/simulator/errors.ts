/** An answer other than 200, as PVE's API code raises it. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** Per-parameter texts of a 400. */
  readonly errors: Readonly<Record<string, string>> | undefined;
  /** `json`: `{data, message, errors}`; `text`: the reason as plain text; `none`: empty (01-auth-*, 12-raw-*). */
  readonly body: 'json' | 'text' | 'none';

  constructor(
    status: number,
    message: string,
    options: { errors?: Readonly<Record<string, string>>; body?: 'json' | 'text' | 'none' } = {},
  ) {
    super(message);
    this.status = status;
    this.errors = options.errors;
    this.body = options.body ?? 'json';
  }
}

/** The connection is closed without an answer. */
export class ConnectionClosed extends Error {
  override readonly name = 'ConnectionClosed';
}

/** What `die "text\n"` becomes: 500 with the text as reason and message. */
export function dieWith(text: string): ApiError {
  return new ApiError(500, text);
}

/** What `raise_param_exc` becomes: 400 with one text per parameter. */
export function paramError(errors: Readonly<Record<string, string>>): ApiError {
  return new ApiError(400, 'Parameter verification failed.', { errors });
}

/** 403 of a handler or of the permission check. */
export function forbidden(detail?: string): ApiError {
  return new ApiError(403, `Permission check failed${detail === undefined ? '' : ` (${detail})`}`);
}

/** 595/596 of pveproxy: no body (02-node-status-unreachable-node). */
export function proxyError(status: 595 | 596, reason: string): ApiError {
  return new ApiError(status, reason, { body: 'none' });
}

/** Errors of the HTTP layer itself: the reason as plain text (12-raw-chunked-put). */
export function transportError(status: number, reason: string): ApiError {
  return new ApiError(status, reason, { body: 'text' });
}

export function missingConfig(node: string, vmid: number): ApiError {
  return dieWith(`Configuration file 'nodes/${node}/qemu-server/${vmid}.conf' does not exist`);
}

/** The other text for the same thing, from clone, stop and shutdown (pve/README 7). */
export function noConfigFound(node: string, vmid: number): ApiError {
  return dieWith(`unable to find configuration file for VM ${vmid} on node '${node}'`);
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
