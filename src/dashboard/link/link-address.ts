const linkAddress = /^\/v1\/links\/(?<id>[^/]+)\/(?<name>[^/]+)$/;

/** Whether an address is that of a link to a file, which anyone with it sees without signing in. */
export function isLinkAddress(path: string): boolean {
  return linkAddress.test(path);
}

/** The job and the file that a link names, and what else is in it. */
export function readLink({ pathname, search }: Pick<Location, "pathname" | "search">) {
  const { id = "", name = "" } = linkAddress.exec(pathname)?.groups ?? {};
  const given = new URLSearchParams(search);
  const read = (field: string) => given.get(field) ?? "";
  const query = {
    expires: read("expires"),
    sha256: read("sha256"),
    signature: read("signature"),
    by: given.get("by") ?? undefined,
    summary: given.has("summary") ? ("true" as const) : undefined,
  };
  return { params: { id, name: decodeURIComponent(name) }, query };
}
