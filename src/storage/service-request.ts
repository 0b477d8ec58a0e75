import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";

/** A request of a worker to the service. */
export interface ServiceRequest<T> {
  readonly method: "GET" | "HEAD" | "POST" | "PUT";
  /** Below the address of the worker's job. */
  readonly path: string;
  /** Called again at each try, as `body` is. */
  readonly headers?: () => Readonly<Record<string, string>>;
  readonly body?: () => string | Readable;
  /** Statuses of answers that `readAnswer` takes. */
  readonly statuses: readonly number[];
  readonly signal?: AbortSignal | undefined;
  /** Where it fails, the request is repeated. */
  readAnswer(this: void, answer: Dispatcher.ResponseData): Promise<T>;
  /** Bytes transferred by all tries. When it has grown, the time limit of outages starts again. */
  readonly countTransferred?: () => number;
}

/** Repeats a request until it is answered, over outages of the service. */
export type RequestService = <T>(request: ServiceRequest<T>) => Promise<T>;
