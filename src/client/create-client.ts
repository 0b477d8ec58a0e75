import type { Dispatcher } from "undici";
import { createCaller, type RouteCaller } from "./create-caller.ts";
import { downloadArtifact, type ArtifactDownloadOptions } from "./download-artifact.ts";
import type { Connection } from "./send-request.ts";
import { createUndiciTransport } from "./undici-transport.ts";
import type { UploadOptions } from "./upload-blob.ts";
import { type UploadedModel, uploadModel } from "./upload-model.ts";

interface ClientOptions extends Pick<Connection, "baseUrl" | "token"> {
  /** Of undici, such as a proxy agent. */
  readonly dispatcher?: Dispatcher;
}

export interface Client extends RouteCaller {
  /** Sends a model, with the files of its external data. */
  uploadModel(file: string, options?: UploadOptions): Promise<UploadedModel>;
  /** The file appears once it is complete. */
  downloadArtifact(jobId: string, name: string, options: ArtifactDownloadOptions): Promise<void>;
}

/** A client of the service with files, for Node. */
export function createClient({ dispatcher, ...service }: ClientOptions): Client {
  const connection = { ...service, transport: createUndiciTransport(dispatcher) };
  return {
    ...createCaller(connection),
    uploadModel: (file, uploading = {}) => uploadModel(file, uploading, connection),
    downloadArtifact: (jobId, name, downloading) =>
      downloadArtifact({ jobId, name }, downloading, connection),
  };
}
