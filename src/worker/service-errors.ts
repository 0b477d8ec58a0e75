import type { ErrorCode } from "../contract/errors.ts";

/** A permanent refusal: the job is not this worker's, or the worker's protocol is not supported. */
export class ServiceRefusal extends Error {
  readonly status: number;
  readonly code: ErrorCode | undefined;

  constructor(message: string, { status, code }: { status: number; code: ErrorCode | undefined }) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The service could not be reached for longer than the worker waits. */
export class ServiceOutage extends Error {}
