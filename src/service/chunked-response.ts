import { type IncomingMessage, ServerResponse } from "node:http";

/** Chunks that were made of pieces: those of a log are written to all who follow it. */
const chunks = new WeakMap<Uint8Array, Buffer>();

/** Has each piece of a body of unknown length written as one buffer; Node's own writes four. */
export class ChunkedResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
  #isBegun = false;

  override flushHeaders(): void {
    super.flushHeaders();
    this.#isBegun = true;
  }

  override write(piece: Uint8Array | string, ...rest: never[]): boolean {
    const { socket } = this;
    const isChunk = this.#isBegun && this.chunkedEncoding && rest.length === 0;
    if (!isChunk || socket === null || typeof piece === "string" || piece.length === 0) {
      return super.write(piece, ...rest);
    }
    const isTaken = socket.write(findChunk(piece));
    if (!isTaken) socket.once("drain", () => this.emit("drain"));
    return isTaken;
  }
}

function findChunk(piece: Uint8Array): Buffer {
  const known = chunks.get(piece);
  if (known !== undefined) return known;
  const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, end]);
  chunks.set(piece, chunk);
  return chunk;
}

const end = Buffer.from("\r\n");
