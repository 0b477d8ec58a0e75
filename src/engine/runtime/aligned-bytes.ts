/**
 * Memory for the runtime, which does not copy inputs; some of its kernels round otherwise on memory
 * that is less aligned than its own. Resizable buffers start at a page.
 */
export function alignedBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(length, { maxByteLength: length }), 0, length);
}
