import { frameSplitter } from "./frame-splitter.ts";
import { bytes, decode, integer, many, type Message, message, one, type Read, text } from "./protobuf.ts";

export const protobufType = "application/vnd.kubernetes.protobuf";

type Happening = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string;
}

export interface StatusAnswer {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: object;
  readonly code: number;
}

export interface EventReading {
  /** Of an event. */
  readonly maxBytes: number;
  /** What to throw where the server says why it ends the watch. */
  readonly errorOf: (status: StatusAnswer) => Error;
}

/** In front of every object; then comes a message with the object as bytes. */
const magic = Buffer.from("k8s\0");

const envelope = message<{ raw?: Uint8Array }>({ raw: [2, bytes] });
const extension = message<{ raw: Uint8Array }>({ raw: [1, bytes] });
const watchEvent = message<{ type: Happening | "ERROR"; object: { raw: Uint8Array } }>({
  type: [1, text as Read<Happening | "ERROR">],
  object: [2, one(extension)],
});
const listMetadata = message<ListMetadata>({
  resourceVersion: [2, text],
  continue: [3, text],
});
const statusCause = message<{ reason?: string; message?: string; field?: string }>({
  reason: [1, text],
  message: [2, text],
  field: [3, text],
});
const statusDetails = message<{ causes?: object[]; retryAfterSeconds?: number }>({
  causes: [4, many(one(statusCause))],
  retryAfterSeconds: [5, integer],
});
const status = message<StatusAnswer>({
  message: [3, text],
  reason: [4, text],
  details: [5, one(statusDetails)],
  code: [6, integer],
});

/** Why a request was refused. */
export function decodeStatus(answer: Uint8Array): StatusAnswer & { readonly kind: "Status" } {
  return { ...decodeObject(status, answer), kind: "Status" };
}

export function decodeObject<T>(type: Message<T>, answer: Uint8Array): T {
  if (!magic.every((byte, at) => answer[at] === byte)) throw new TypeError("The API server's answer is no protobuf");
  return decode(type, decode(envelope, answer, magic.length).raw ?? new Uint8Array());
}

export function decodeList<T>(type: Message<T>, answer: Uint8Array): { metadata: ListMetadata; items: readonly T[] } {
  const list = message<{ metadata: ListMetadata; items?: T[] }>({
    metadata: [1, one(listMetadata)],
    items: [2, many(one(type))],
  });
  return { items: [], ...decodeObject(list, answer) };
}

/** Events of a watch, until one says why the watch ends. */
export async function* decodeEvents<T>(
  type: Message<T>,
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, errorOf }: EventReading,
): AsyncGenerator<{ type: Happening; object: T }, void, undefined> {
  const framesOf = frameSplitter(maxBytes);
  for await (const chunk of chunks) {
    for (const frame of framesOf(chunk)) {
      const { type: happening, object } = decode(watchEvent, frame);
      if (happening === "ERROR") throw errorOf(decodeStatus(object.raw));
      yield { type: happening, object: decodeObject(type, object.raw) };
    }
  }
}
