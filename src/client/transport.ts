/**
 * Bytes to send in place of a JSON body: a stream in Node. Browsers send no streams over HTTP/1.1,
 * and read a blob themselves.
 */
export type UploadBody =
  | { readonly bytes: number; readonly stream: () => AsyncIterable<Uint8Array> }
  | { readonly blob: Blob; readonly onProgress: (sentBytes: number) => void };

interface TransportRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string | UploadBody | undefined;
  readonly signal: AbortSignal | undefined;
}

/** By their names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface TransportAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** Read once. */
  readonly body: AsyncIterable<Uint8Array> & { text(): Promise<string> };
}

/** The service cannot be reached, or the connection was lost during the answer. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/**
 * Sends one request: Node and browsers have different ways.
 * @throws an error that `isConnectionError` recognises where the service cannot be reached
 */
export type Transport = (request: TransportRequest) => Promise<TransportAnswer>;
