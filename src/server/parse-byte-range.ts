import { ServiceError } from "../contract/errors.ts";

/** First and last byte, inclusive. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The range of bytes that a Range header asks for; undefined where it asks for several or has
 * another form, to which the whole file is the response.
 * @throws ServiceError range_not_satisfiable
 */
export function parseByteRange(header: string, size: number): ByteRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header.trim()) ?? [];
  if (first === "" && last === "") return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (start > end) {
    const message = `Range "${header}" lies outside the ${size} bytes of the file`;
    const headers = { "content-range": `bytes */${size}` };
    throw new ServiceError("range_not_satisfiable", message, { headers });
  }
  return { start, end };
}
