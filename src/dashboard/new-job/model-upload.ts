import { signal } from "@preact/signals";
import { uploadSource } from "../../contract/models/model-source.ts";
import { hashInWorker } from "./hash-in-worker.ts";
import { sendFile } from "./send-file.ts";

type UploadStep = "hashing" | "sending" | "done" | "failed";

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
      this.#sha256 ??= await this.#run("hashing", (options) => hashInWorker(this.file, options));
      const sha256 = this.#sha256;
      await this.#run("sending", (options) => sendFile(this.file, { sha256, ...options }));
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
    return uploadSource(this.#sha256 ?? "");
  }

  #run<T>(
    step: UploadStep,
    work: (options: { signal: AbortSignal; onProgress: (bytes: number) => void }) => Promise<T>,
  ): Promise<T> {
    this.step.value = step;
    this.fraction.value = 0;
    const onProgress = (bytes: number) => (this.fraction.value = bytes / this.file.size);
    return work({ signal: this.#stop.signal, onProgress });
  }
}
