import { parseResponseJson } from "./parse-response-json.ts";
import { decodeUtf8 } from "./protobuf/decode-utf8.ts";
import { decodeList } from "./protobuf/responses.ts";
import type { KubernetesObject, ResourceType, Stored } from "./resources.ts";

interface Page<T extends KubernetesObject> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly Stored<T>[];
}

/**
 * Decodes a page of a list and frees its bytes, which lie outside of the heap: hundreds of them
 * would be there before the heap has grown enough to be collected.
 */
export function decodePage<T extends KubernetesObject>(
  { protobuf }: ResourceType<T>,
  answer: Uint8Array<ArrayBuffer>,
): Page<T> {
  const page: Page<T> = protobuf
    ? decodeList(protobuf, answer)
    : parseResponseJson(decodeUtf8(answer));
  answer.buffer.transfer(0);
  return page;
}
