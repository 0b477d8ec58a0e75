import { signal } from "@preact/signals";
import type { HashMessage } from "./hash-worker.ts";
import hashWorkerAddress from "./hash-worker.ts?worker&url";
import { checkModelFile } from "./check-model-file.ts";
import { uploadBlob } from "../../client/upload-blob.ts";
import { uploadSource } from "../../contract/models/model-source.ts";
import { connection } from "../session/service.ts";
import { trustWorkerAddress } from "../shared/trust-worker-address.ts";

type UploadStep = "hashing" | "sending" | "done" | "failed" | "refused";

/** A file on its way to the service. */
export class ModelUpload {
  readonly file: File;
  readonly step = signal<UploadStep>("hashing");
  /** Of the step, 0 to 1. */
  readonly fraction = signal(0);
  readonly error = signal<unknown>(undefined);
  #sha256: string | undefined;
  readonly #stop = new AbortController();

  constructor(file: File) {
    this.file = file;
  }

  /** Hashes and sends the file; after a failure it goes on where it stopped. */
  async start(): Promise<void> {
    this.error.value = undefined;
    try {
      await checkModelFile(this.file);
    } catch (error) {
      this.error.value = error;
      this.step.value = "refused";
      return;
    }
    try {
      this.#sha256 ??= await this.#hash();
      await this.#send(this.#sha256);
      this.step.value = "done";
    } catch (error) {
      this.error.value = error;
      this.step.value = "failed";
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** What a job names as its model. */
  get source(): string {
    if (this.#sha256 === undefined) throw new Error(`"${this.file.name}" has no hash yet`);
    return uploadSource(this.#sha256);
  }

  #hash(): Promise<string> {
    const showProgress = this.#begin("hashing");
    return hashInWorker(this.file, showProgress, this.#stop.signal);
  }

  async #send(sha256: string): Promise<void> {
    const { file } = this;
    const showProgress = this.#begin("sending");
    const readFrom = (offset: number) => ({
      blob: file.slice(offset),
      onProgress: (sentBytes: number) => showProgress(offset + sentBytes),
    });
    await uploadBlob({ sha256, bytes: file.size, readFrom }, this.#stop.signal, connection);
  }

  #begin(step: UploadStep): (doneBytes: number) => void {
    this.step.value = step;
    this.fraction.value = 0;
    return (doneBytes) => {
      this.fraction.value = doneBytes / this.file.size;
    };
  }
}

/** SHA-256 of a file of any size, in hexadecimal, in a thread of its own. */
function hashInWorker(
  file: File,
  onProgress: (hashedBytes: number) => void,
  stop: AbortSignal,
): Promise<string> {
  const worker = new Worker(trustWorkerAddress(hashWorkerAddress), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.addEventListener("message", ({ data }: MessageEvent<HashMessage>) => {
    onProgress(data.hashedBytes);
    if (data.sha256 !== undefined) resolve(data.sha256);
  });
  worker.addEventListener("error", () => reject(new Error(`"${file.name}" cannot be read`)));
  stop.addEventListener("abort", () => reject(new Error("Stopped")));
  worker.postMessage(file);
  return promise.finally(() => worker.terminate());
}
