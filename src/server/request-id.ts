const pattern = /^[\w.:-]{1,128}$/;
const ids = new WeakMap<Request, string>();

/** The id of a request, as a caller or a proxy gave it in `X-Request-Id`, or a new one. */
export function requestId(request: Request): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const given = request.headers.get("x-request-id") ?? "";
  const id = pattern.test(given) ? given : crypto.randomUUID();
  ids.set(request, id);
  return id;
}
