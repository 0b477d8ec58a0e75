/** The media type of the Content-Type header without parameters; empty where there is none. */
export function readMediaType(request: Request): string {
  const [type = ""] = (request.headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase();
}
