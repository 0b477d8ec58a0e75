/** A bucket and the key that opens it. */
export interface S3Access {
  /** Address of the server, such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Whether the bucket is in the path of an address, else in its host. */
  readonly isPathStyle: boolean;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Address of an object; without a key that of the bucket. */
export function objectUrl(
  { endpoint, bucket, isPathStyle }: Omit<S3Access, "accessKeyId" | "secretAccessKey">,
  key: string,
  query: Readonly<Record<string, string>> = {},
): URL {
  const url = new URL(endpoint);
  const base = url.pathname.replace(/\/$/, "");
  if (!isPathStyle) url.host = `${bucket}.${url.host}`;
  url.pathname = `${base}${isPathStyle ? `/${bucket}` : ""}/${encodeKey(key)}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}

/** As signatures have it: all but the unreserved characters of RFC 3986 and slashes. */
export function encodeKey(key: string): string {
  return encodeURIComponent(key)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}
