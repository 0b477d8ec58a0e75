import type { LogLine } from "../contract/log.ts";
import type { Reply } from "../contract/route.ts";
import { type RouteName, routes } from "../contract/routes.ts";
import type { JobStatus } from "../contract/status.ts";
import {
  type ClientOptions,
  type CallInput,
  isRepeatable,
  type JsonRouteName,
  type UntypedInput,
  type CallOutput,
  sendRequest,
} from "./send-request.ts";
import { downloadArtifact, type ArtifactDownloadOptions } from "./download-artifact.ts";
import { followLogs } from "./follow-logs.ts";
import { retry } from "./retry.ts";
import { type UploadedFile, uploadModel, type UploadOptions } from "./upload-model.ts";

interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface Client {
  /** Calls an endpoint of the route table. Retries transient failures where that is safe. */
  call<N extends JsonRouteName>(
    name: N,
    input: CallInput<N>,
    options?: CallOptions,
  ): Promise<CallOutput<N>>;
  revokeToken(id: string, options?: CallOptions): Promise<void>;
  followLogs(
    jobId: string,
    options?: CallOptions & { after?: number },
  ): AsyncGenerator<LogLine, JobStatus>;
  uploadModel(file: string, options?: UploadOptions): Promise<UploadedFile>;
  /** The file appears once it is complete. */
  downloadArtifact(jobId: string, name: string, options: ArtifactDownloadOptions): Promise<void>;
}

/** A client of the service, typed by the contract's route table. */
export function createClient(options: ClientOptions): Client {
  const requestText = (name: RouteName, input: UntypedInput, signal: AbortSignal | undefined) => {
    const once = async () => {
      const { statusCode, body } = await sendRequest(name, input, { ...options, signal });
      return { status: statusCode, text: await body.text() };
    };
    return isRepeatable(name, input) ? retry(once, signal) : once();
  };
  return {
    async call(name, input, { signal } = {}) {
      const { status, text } = await requestText(name, toUntypedInput(input), signal);
      return parseReply(name, status, JSON.parse(text));
    },
    async revokeToken(id, { signal } = {}) {
      await requestText("revokeToken", { params: { id } }, signal);
    },
    followLogs: (jobId, following = {}) => followLogs(jobId, following, options),
    uploadModel: (file, uploading = {}) => uploadModel(file, uploading, options),
    downloadArtifact: (jobId, name, downloading) =>
      downloadArtifact({ jobId, name }, downloading, options),
  };
}

/** Every input of a route consists of these parts. */
function toUntypedInput<N extends RouteName>(input: CallInput<N>): UntypedInput {
  return input as UntypedInput;
}

/** Parses by the schema that gives the result its type. */
function parseReply<N extends RouteName>(
  name: N,
  status: number,
  document: unknown,
): CallOutput<N> {
  const replies: Readonly<Record<number, Reply>> = routes[name].replies;
  const reply = replies[status];
  if (reply === undefined || !("json" in reply)) {
    throw new TypeError(`${name} has no JSON answer ${status}`);
  }
  return reply.json.parse(document) as CallOutput<N>;
}
