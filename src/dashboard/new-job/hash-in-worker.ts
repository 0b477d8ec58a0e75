import type { HashMessage } from "./hash-worker.ts";
import hashWorkerAddress from "./hash-worker.ts?worker&url";
import { trustWorkerAddress } from "../shared/trust-worker-address.ts";

/** SHA-256 of a file of any size, in hexadecimal, in a thread of its own. */
export function hashInWorker(
  file: File,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (hashedBytes: number) => void },
): Promise<string> {
  const worker = new Worker(trustWorkerAddress(hashWorkerAddress), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.addEventListener("message", ({ data }: MessageEvent<HashMessage>) => {
    onProgress(data.hashedBytes);
    if (data.sha256 !== undefined) resolve(data.sha256);
  });
  worker.addEventListener("error", () => reject(new Error(`"${file.name}" cannot be read`)));
  signal.addEventListener("abort", () => reject(new Error("Stopped")));
  worker.postMessage(file);
  return promise.finally(() => worker.terminate());
}
