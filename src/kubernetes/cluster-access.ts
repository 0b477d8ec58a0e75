/** Where an API server is and what to show it. */
export interface ClusterAccess {
  /** For instance `https://10.0.0.1:443`. */
  readonly url: string;
  readonly namespace: string;
  readonly tls: {
    readonly ca?: string | Buffer;
    readonly cert?: string | Buffer;
    readonly key?: string | Buffer;
    readonly servername?: string;
    readonly rejectUnauthorized?: boolean;
  };
  /** Headers of a request. They are read anew from time to time, and with `refresh` when the server has refused the last. */
  authorize(options?: { refresh: boolean }): Promise<Readonly<Record<string, string>>>;
}

/** Credentials are read again after so long; tokens of pods are replaced well before they expire. */
const cacheMs = 60_000;

/** Remembers what `read` gave for a minute. Callers at the same time share one read. */
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
