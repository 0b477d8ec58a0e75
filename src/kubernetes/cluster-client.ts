import { type ApiRequest, apiRequest } from "./api-request.ts";
import type {
  CreateOptions,
  DeleteOptions,
  KubernetesClient,
  ListOptions,
  ListPage,
  LogOptions,
  MergePatch,
  PatchOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./kubernetes-client.ts";
import { responseError } from "./kubernetes-error.ts";
import { readLines } from "./pod-log.ts";
import { decodeUtf8 } from "./protobuf/decode-utf8.ts";
import {
  decodeEvents,
  type DecodeEventsOptions,
  decodeList,
  decodeObject,
  type KubernetesStatus,
} from "./protobuf/responses.ts";
import { type KubernetesObject, resources, type ResourceType, type Stored } from "./resources.ts";
import type { CallOptions, Transport } from "./transport.ts";

/**
 * Objects of a page. Its pieces, a kilobyte or more each, wait for its end, and the longer they
 * wait the more of them outlive the collections of the young heap: pages of a hundred objects leave
 * up to 30 MB more in malloc's heap.
 */
const pageSize = 50;
/** etcd limits objects to about 2 MB. */
const maxEventBytes = 16 * 1024 * 1024;
const watchAnswerMs = 15_000;
/** A log is not followed: a node that has it sends it at once. */
const logSilenceMs = 15_000;

export class ClusterClient implements KubernetesClient {
  readonly namespace: string;
  readonly #transport: Transport;

  constructor(transport: Transport, namespace: string) {
    this.#transport = transport;
    this.namespace = namespace;
  }

  inNamespace(namespace = this.namespace): KubernetesClient {
    return namespace === this.namespace ? this : new ClusterClient(this.#transport, namespace);
  }

  get<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    options?: CallOptions,
  ): Promise<Stored<T>> {
    return this.#call(type, apiRequest("get", type, { namespace: this.namespace, name }), options);
  }

  async *list<T extends KubernetesObject>(
    type: ResourceType<T>,
    { labelSelector, fieldSelector, limit = pageSize, ...options }: ListOptions = {},
  ): AsyncGenerator<ListPage<T>, void, undefined> {
    let next: string | undefined;
    do {
      const query = { labelSelector, fieldSelector, limit, continue: next };
      const request = apiRequest("list", type, { namespace: this.namespace, query });
      const answer = await this.#transport.send(request, options);
      const { items, metadata } = decodePage(type, answer);
      yield { items, resourceVersion: metadata.resourceVersion };
      next = metadata.continue;
    } while (next);
  }

  create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T,
    { dryRun = false, ...options }: CreateOptions = {},
  ): Promise<Stored<T>> {
    const repeatable = object.metadata?.name !== undefined;
    const body = withTypeMeta(type, object);
    const query = dryRun ? { dryRun: "All", fieldValidation: "Strict" } : {};
    const facts = { namespace: this.namespace, body, repeatable, query };
    return this.#call(type, apiRequest("create", type, facts), options);
  }

  replace<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: Stored<T>,
    { subresource, ...options }: WriteOptions = {},
  ): Promise<Stored<T>> {
    const { name } = object.metadata;
    const body = withTypeMeta(type, object);
    const facts = { namespace: this.namespace, name, subresource, body };
    return this.#call(type, apiRequest("update", type, facts), options);
  }

  patch<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    patch: MergePatch<T>,
    { subresource, resourceVersion, ...options }: PatchOptions = {},
  ): Promise<Stored<T>> {
    const body =
      resourceVersion === undefined ? patch : withResourceVersion(patch, resourceVersion);
    const facts = { namespace: this.namespace, name, subresource, body };
    return this.#call(type, apiRequest("patch", type, facts), options);
  }

  async delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    { propagationPolicy, uid, gracePeriodSeconds, ...options }: DeleteOptions,
  ): Promise<void> {
    const body = { propagationPolicy, gracePeriodSeconds, preconditions: { uid } };
    await this.#transport.send(
      apiRequest("delete", type, { namespace: this.namespace, name, body }),
      options,
    );
  }

  review<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T,
    options?: CallOptions,
  ): Promise<T> {
    const body = withTypeMeta(type, object);
    return this.#call(
      type,
      apiRequest("create", type, { namespace: this.namespace, body }),
      options,
    );
  }

  watch<T extends KubernetesObject>(
    type: ResourceType<T>,
    { signal, ...query }: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const facts = {
      namespace: this.namespace,
      query: { ...query, watch: true, allowWatchBookmarks: true },
    };
    const request = apiRequest("watch", type, facts);
    // The server ends a watch after `timeoutSeconds`; silence beyond that means a lost connection.
    const silenceMs = query.timeoutSeconds * 1000 + watchAnswerMs;
    const body = this.#transport.open(request, { signal, headersMs: watchAnswerMs, silenceMs });
    const createError = (status: KubernetesStatus) =>
      responseError(request.action, status.code, JSON.stringify(status));
    const decodeOptions = { maxBytes: maxEventBytes, createError };
    return type.protobuf
      ? decodeEvents(type.protobuf, body, decodeOptions)
      : parseJsonEvents<T>(body, decodeOptions);
  }

  openLog(pod: string, options: LogOptions): AsyncIterable<Uint8Array> {
    const facts = {
      namespace: this.namespace,
      name: pod,
      subresource: "log",
      query: { ...options, timestamps: true },
    } as const;
    const request = apiRequest("get", resources.pods, facts);
    return this.#transport.open(request, { headersMs: logSilenceMs, silenceMs: logSilenceMs });
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #call<T extends KubernetesObject>(
    { protobuf }: ResourceType<T>,
    request: ApiRequest,
    options: CallOptions = {},
  ): Promise<Stored<T>> {
    const answer = await this.#transport.send(request, options);
    return protobuf ? decodeObject(protobuf, answer) : parseResponseJson(decodeUtf8(answer));
  }
}

function withTypeMeta<T extends KubernetesObject>(
  { apiVersion, kind }: ResourceType<T>,
  object: T,
): T {
  return { ...object, apiVersion, kind };
}

function withResourceVersion(
  patch: { readonly metadata?: object | null },
  resourceVersion: string,
): object {
  return { ...patch, metadata: { ...patch.metadata, resourceVersion } };
}

interface ErrorEvent {
  readonly type: "ERROR";
  readonly object: KubernetesStatus;
}

/** Events of a watch in JSON, one a line, until an event of type ERROR, which is thrown. */
async function* parseJsonEvents<T extends KubernetesObject>(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, createError }: DecodeEventsOptions,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  for await (const line of readLines(chunks, maxBytes)) {
    const event = parseResponseJson<WatchEvent<T> | ErrorEvent>(line);
    if (event.type === "ERROR") throw createError(event.object);
    yield event;
  }
}

interface Page<T extends KubernetesObject> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly Stored<T>[];
}

/**
 * Decodes a page of a list and frees its bytes, which lie outside of the heap: hundreds of them
 * would be there before the heap has grown enough to be collected.
 */
function decodePage<T extends KubernetesObject>(
  { protobuf }: ResourceType<T>,
  answer: Uint8Array<ArrayBuffer>,
): Page<T> {
  const page: Page<T> = protobuf
    ? decodeList(protobuf, answer)
    : parseResponseJson(decodeUtf8(answer));
  answer.buffer.transfer(0);
  return page;
}

/** The API server is trusted to answer with objects of the requested type. */
export function parseResponseJson<T>(json: string): T {
  return JSON.parse(json);
}
