import { readXmlText } from "../read-xml-text.ts";

/** An answer of an S3 server that repeating the request does not change. */
export class S3Error extends Error {
  readonly status: number;
  /** Code of the server, such as `AccessDenied`; empty where it named none. */
  readonly code: string;

  constructor(message: string, { status, code }: { status: number; code: string }) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function createS3Error(call: string, status: number, xml: string): S3Error {
  const code = readXmlText(xml, "Code") ?? "";
  const reason = readXmlText(xml, "Message") ?? "";
  const details = [code, reason].filter((text) => text !== "").join(": ");
  const message = `The S3 server answered ${status} to ${call}${details && `: ${details}`}`;
  return new S3Error(message, { status, code });
}
