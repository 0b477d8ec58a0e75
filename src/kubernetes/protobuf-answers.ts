import { bytes, decode, integer, many, type Message, message, one, type Read, text } from "./protobuf.ts";
import { readFrames } from "./read-frames.ts";

export const protobufType = "application/vnd.kubernetes.protobuf";

type Happening = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string;
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
const status = message<{ message?: string; reason?: string; details?: object; code: number }>({
  message: [3, text],
  reason: [4, text],
  details: [5, one(statusDetails)],
  code: [6, integer],
});

/** Why a request was refused. */
export function decodeStatus(answer: Uint8Array): { readonly kind: "Status"; readonly code: number } {
  return { ...decode(status, contentOf(answer)), kind: "Status" };
}

export function decodeList<T>(type: Message<T>, answer: Uint8Array): { metadata: ListMetadata; items: readonly T[] } {
  const list = message<{ metadata: ListMetadata; items?: T[] }>({
    metadata: [1, one(listMetadata)],
    items: [2, many(one(type))],
  });
  return { items: [], ...decode(list, contentOf(answer)) };
}

/** Events of a watch; of an error, the status that says why. */
export async function* decodeEvents<T>(type: Message<T>, chunks: AsyncIterable<Uint8Array>, maxBytes: number) {
  for await (const frame of readFrames(chunks, maxBytes)) {
    const { type: happening, object } = decode(watchEvent, frame);
    if (happening === "ERROR") yield { type: happening, object: decodeStatus(object.raw) };
    else yield { type: happening, object: decode(type, contentOf(object.raw)) };
  }
}

function contentOf(answer: Uint8Array): Uint8Array {
  if (!magic.equals(answer.subarray(0, magic.length))) throw new TypeError("The API server's answer is no protobuf");
  return decode(envelope, answer.subarray(magic.length)).raw ?? new Uint8Array();
}
