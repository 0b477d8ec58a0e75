interface ByteProgressOptions {
  /** Bytes of all the work. */
  readonly total: number;
  readonly message: string;
  readonly onProgress: (fraction: number, message: string) => void;
}

/** Turns bytes that are done into the fraction of all. */
export function createByteProgress({ total, message, onProgress }: ByteProgressOptions) {
  let done = 0;
  return (bytes: number): void => {
    done += bytes;
    onProgress(total === 0 ? 1 : done / total, message);
  };
}
