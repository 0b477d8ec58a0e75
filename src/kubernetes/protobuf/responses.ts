import { createFrameSplitter } from "./frame-splitter.ts";
import {
  bytesField,
  integerField,
  messageField,
  repeatedField,
  stringField,
} from "./field-readers.ts";
import {
  decodeMessage,
  type FieldReader,
  type MessageReader,
  messageReader,
} from "./message-reader.ts";

export const protobufContentType = "application/vnd.kubernetes.protobuf";

type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string;
}

export interface KubernetesStatus {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: object;
  readonly code: number;
}

export interface DecodeEventsOptions {
  /** Limit of the size of an event. */
  readonly maxBytes: number;
  /** Creates what is thrown on an event of type ERROR. */
  readonly createError: (status: KubernetesStatus) => Error;
}

/** Precedes every object; a message with the object as bytes follows. */
const magic = Buffer.from("k8s\0");

const envelope = messageReader<{ raw?: Uint8Array }>({ raw: [2, bytesField] });
const rawExtension = messageReader<{ raw: Uint8Array }>({ raw: [1, bytesField] });
const watchEvent = messageReader<{ type: WatchEventType | "ERROR"; object: { raw: Uint8Array } }>({
  type: [1, stringField as FieldReader<WatchEventType | "ERROR">],
  object: [2, messageField(rawExtension)],
});
const listMetadata = messageReader<ListMetadata>({
  resourceVersion: [2, stringField],
  continue: [3, stringField],
});
const fieldCause = messageReader<{ reason?: string; message?: string; field?: string }>({
  reason: [1, stringField],
  message: [2, stringField],
  field: [3, stringField],
});
const statusDetails = messageReader<{ causes?: object[]; retryAfterSeconds?: number }>({
  causes: [4, repeatedField(messageField(fieldCause))],
  retryAfterSeconds: [5, integerField],
});
const status = messageReader<KubernetesStatus>({
  message: [3, stringField],
  reason: [4, stringField],
  details: [5, messageField(statusDetails)],
  code: [6, integerField],
});

export function decodeStatus(answer: Uint8Array): KubernetesStatus & { readonly kind: "Status" } {
  return { ...decodeObject(status, answer), kind: "Status" };
}

export function decodeObject<T>(type: MessageReader<T>, answer: Uint8Array): T {
  if (!magic.every((byte, at) => answer[at] === byte)) {
    throw new TypeError("The API server's answer is not protobuf");
  }
  return decodeMessage(type, decodeMessage(envelope, answer, magic.length).raw ?? new Uint8Array());
}

export function decodeList<T>(
  type: MessageReader<T>,
  answer: Uint8Array,
): { metadata: ListMetadata; items: readonly T[] } {
  const list = messageReader<{ metadata: ListMetadata; items?: T[] }>({
    metadata: [1, messageField(listMetadata)],
    items: [2, repeatedField(messageField(type))],
  });
  return { items: [], ...decodeObject(list, answer) };
}

/** Events of a watch in protobuf, until an event of type ERROR, which is thrown. */
export async function* decodeEvents<T>(
  type: MessageReader<T>,
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, createError }: DecodeEventsOptions,
): AsyncGenerator<{ type: WatchEventType; object: T }, void, undefined> {
  const splitFrames = createFrameSplitter(maxBytes);
  for await (const chunk of chunks) {
    for (const frame of splitFrames(chunk)) {
      const { type: eventType, object } = decodeMessage(watchEvent, frame);
      if (eventType === "ERROR") throw createError(decodeStatus(object.raw));
      yield { type: eventType, object: decodeObject(type, object.raw) };
    }
  }
}
