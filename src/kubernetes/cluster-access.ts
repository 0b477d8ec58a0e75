/** Address of an API server and credentials for it. */
export interface ClusterAccess {
  /** For instance `https://10.0.0.1:443`. */
  readonly url: string;
  readonly namespace: string;
  readonly tls: {
    readonly ca?: string | Buffer | undefined;
    readonly cert?: string | Buffer | undefined;
    readonly key?: string | Buffer | undefined;
    readonly servername?: string | undefined;
    readonly rejectUnauthorized?: boolean;
  };
  /**
   * Headers of a request. They are cached for a minute; `refresh` reads them again, after the
   * server has refused the last ones.
   */
  authorize(options?: { refresh: boolean }): Promise<Readonly<Record<string, string>>>;
}

/** Tokens of pods are replaced well before they expire. */
const cacheMs = 60_000;

/** Caches the result of `read` for a minute. Concurrent callers share one read. */
export function cacheHeaders(
  read: () => Promise<Record<string, string>>,
): ClusterAccess["authorize"] {
  let last: { headers: Promise<Record<string, string>>; at: number } | undefined;
  return ({ refresh } = { refresh: false }) => {
    const now = performance.now();
    if (last === undefined || refresh || now - last.at > cacheMs) {
      const headers = read();
      last = { headers, at: now };
      headers.catch(() => (last = undefined));
    }
    return last.headers;
  };
}
