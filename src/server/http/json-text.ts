/** A value of type `T` that is JSON text already, in pieces. */
export class JsonText<T> {
  declare readonly type: T;
  readonly #pieces: readonly string[];

  constructor(pieces: readonly string[]) {
    this.#pieces = pieces;
  }

  /** Encodes each piece into its place: joined, they would be copied three times on their way. */
  encode(): Uint8Array<ArrayBuffer> {
    const pieces = this.#pieces;
    const length = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    const bytes = Buffer.allocUnsafe(length);
    let at = 0;
    for (const piece of pieces) at += bytes.write(piece, at);
    return bytes;
  }
}
