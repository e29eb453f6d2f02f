/** The gRPC status of a failed call to Temporal. */
import { isGrpcServiceError } from '@temporalio/client';

/** Those that somebody here tells apart, by the numbers of gRPC. */
export const grpcCodes = {
  notFound: 5,
  permissionDenied: 7,
  unimplemented: 12,
} as const;

/** Looks into `cause` too: the client wraps what gRPC threw. `null` for anything else. */
export function grpcCodeOf(error: unknown): number | null {
  if (isGrpcServiceError(error)) return error.code;
  return error instanceof Error && error.cause !== undefined ? grpcCodeOf(error.cause) : null;
}
