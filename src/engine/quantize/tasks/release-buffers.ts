/**
 * Frees memory at once. The garbage collector does not see how much the buffers take, and would
 * let them pile up.
 */
export function releaseBuffers(...arrays: readonly ArrayBufferView[]): void {
  for (const { buffer } of arrays) {
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}
