import { Readable } from "node:stream";
import { type Dispatcher, getGlobalDispatcher, request } from "undici";
import { createCaller, type RouteCaller } from "./create-caller.ts";
import { type ArtifactDownloadOptions, downloadArtifact } from "./download-artifact.ts";
import { silenceLimitMs } from "./follow-logs.ts";
import type { Connection } from "./send-request.ts";
import type { Transport } from "./transport.ts";
import { type UploadedModel, uploadModel, type UploadOptions } from "./upload-model.ts";
import type { RouteName, Routes } from "../contract/routes/routes.ts";

interface ClientOptions<R extends Partial<Routes>> extends Pick<
  Connection<R>,
  "routes" | "baseUrl" | "token"
> {
  /** Of undici, such as a proxy agent. */
  readonly dispatcher?: Dispatcher;
}

export interface Client<R extends RouteName = RouteName> extends RouteCaller<R> {
  /** Sends a model, with the files of its external data. */
  uploadModel(file: string, options?: UploadOptions): Promise<UploadedModel>;
  /** The file appears once it is complete. */
  downloadArtifact(jobId: string, name: string, options: ArtifactDownloadOptions): Promise<void>;
}

/** A client of the service with files, for Node. */
export function createClient<R extends Partial<Routes>>({
  dispatcher,
  ...service
}: ClientOptions<R>): Client<keyof R & RouteName> {
  const connection = { ...service, transport: createUndiciTransport(dispatcher) };
  return {
    ...createCaller(connection),
    uploadModel: (file, uploading = {}) => uploadModel(file, uploading, connection),
    downloadArtifact: (jobId, name, downloading) =>
      downloadArtifact({ jobId, name }, downloading, connection),
  };
}

/** Sends requests of Node; a dispatcher such as a proxy agent takes the place of the global one. */
function createUndiciTransport(dispatcher: Dispatcher | undefined): Transport {
  return async ({ method, url, headers, body, signal }) => {
    const isUpload = typeof body === "object";
    if (isUpload && "blob" in body) throw new TypeError("Node sends streams, not blobs");
    const { statusCode, ...answer } = await request(url, {
      method,
      headers: isUpload ? { ...headers, "content-length": String(body.bytes) } : headers,
      body: isUpload ? Readable.from(body.stream()) : (body ?? null),
      bodyTimeout: silenceLimitMs,
      signal: signal ?? null,
      dispatcher: dispatcher ?? getGlobalDispatcher(),
    });
    return { status: statusCode, headers: answer.headers, body: answer.body };
  };
}
