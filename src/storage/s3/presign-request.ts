import { AwsV4Signer } from "aws4fetch";
import { objectUrl, type S3Access } from "./s3-address.ts";

interface PresignedRequest {
  readonly method: "GET" | "PUT";
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly seconds: number;
}

/** Address by which anyone can send a request for a while, with the headers that are signed. */
export async function presignRequest(
  access: S3Access,
  { method, key, headers = {}, seconds }: PresignedRequest,
): Promise<string> {
  const { accessKeyId, secretAccessKey, region } = access;
  const url = objectUrl(access, key, { "X-Amz-Expires": String(seconds) }).href;
  const signing = { method, url, headers, accessKeyId, secretAccessKey, region };
  const signer = new AwsV4Signer({ ...signing, service: "s3", signQuery: true });
  return (await signer.sign()).url.href;
}
