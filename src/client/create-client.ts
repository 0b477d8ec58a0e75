import type { Dispatcher } from "undici";
import type { RouteName, Routes } from "../contract/routes/routes.ts";
import { createCaller, type RouteCaller } from "./create-caller.ts";
import { downloadArtifact, type ArtifactDownloadOptions } from "./download-artifact.ts";
import type { Connection } from "./send-request.ts";
import { createUndiciTransport } from "./undici-transport.ts";
import type { UploadOptions } from "./upload-blob.ts";
import { type UploadedModel, uploadModel } from "./upload-model.ts";

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
