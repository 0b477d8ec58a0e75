/** A file of the page, as it is and compressed. */
export interface DashboardFile {
  readonly mediaType: string;
  readonly content: Uint8Array<ArrayBuffer>;
  /** By the names that `Accept-Encoding` has for them, the smallest first. */
  readonly encoded: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

/** The built page. */
export interface Dashboard {
  /** The document of every address. */
  readonly shell: string;
  /** By their paths; the names contain hashes of their contents. */
  readonly files: ReadonlyMap<string, DashboardFile>;
}
