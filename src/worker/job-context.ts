import type { Assignment } from "../contract/worker-protocol/messages.ts";
import type { LocatedSource } from "../contract/worker-protocol/transfers.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import type { Reporter, RunStage } from "./reporter.ts";
import type { SourceRelay } from "./service-connection.ts";
import type { Usage } from "./watch-usage.ts";

export interface JobDependencies {
  readonly blobs: BlobFiles;
  /** Scratch folder of this attempt. */
  readonly directory: string;
  /** Folder of all attempts at the job on this machine. */
  readonly workDirectory: string;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
  /** Where a source of the job is that the service has credentials for. */
  readonly locateSource: (source: string) => Promise<LocatedSource>;
  readonly relay: SourceRelay | undefined;
}

/** What the functions of a worker share. */
export interface JobContext extends JobDependencies {
  readonly assignment: Assignment;
  readonly runStage: RunStage;
  /** Folder of the result's files. */
  readonly outputDirectory: string;
  readonly usage: Usage;
}
