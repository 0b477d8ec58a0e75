import type { WatchEvent } from "./kubernetes-client.ts";
import { parseResponseJson } from "./parse-response-json.ts";
import type { DecodeEventsOptions, KubernetesStatus } from "./protobuf/responses.ts";
import { readLines } from "./read-lines.ts";
import type { KubernetesObject } from "./resources.ts";

interface ErrorEvent {
  readonly type: "ERROR";
  readonly object: KubernetesStatus;
}

/** Events of a watch in JSON, one a line, until an event of type ERROR, which is thrown. */
export async function* parseJsonEvents<T extends KubernetesObject>(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, createError }: DecodeEventsOptions,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  for await (const line of readLines(chunks, maxBytes)) {
    const event = parseResponseJson<WatchEvent<T> | ErrorEvent>(line);
    if (event.type === "ERROR") throw createError(event.object);
    yield event;
  }
}
