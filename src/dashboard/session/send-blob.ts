import { ConnectionError, type UploadBody } from "../../client/transport.ts";

/** Sends a blob by XMLHttpRequest, since `fetch` does not say how much of it was sent. */
export function sendBlob(
  body: UploadBody,
  url: URL,
  request: { method: string; headers: [string, string][]; signal: AbortSignal | null },
): Promise<Response> {
  if (!("blob" in body)) throw new TypeError("Browsers send blobs, not streams");
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const sent = new XMLHttpRequest();
  sent.open(request.method, url);
  for (const [name, value] of request.headers) sent.setRequestHeader(name, value);
  sent.upload.addEventListener("progress", ({ loaded }) => body.onProgress(loaded));
  sent.addEventListener("load", () => resolve(toResponse(sent)));
  sent.addEventListener("error", () => reject(new ConnectionError("The connection was lost")));
  sent.addEventListener("abort", () => reject(new Error("Stopped")));
  request.signal?.addEventListener("abort", () => sent.abort());
  sent.send(body.blob);
  return promise;
}

function toResponse(answered: XMLHttpRequest): Response {
  const lines = answered.getAllResponseHeaders().trim().split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return new Response(answered.responseText, { status: answered.status, headers });
}
