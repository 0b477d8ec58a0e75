import type { Records } from "../records/open-records.ts";
import { type AppCredentials, Installations } from "./installations.ts";
import { type Log, startReportLoop } from "./report-loop.ts";

interface Surroundings {
  readonly records: Records;
  readonly log: Log;
}

export interface GitHubApp {
  /** What is left to tell is told after the next start. */
  close(): Promise<void>;
}

/** Keeps check runs up to date as a GitHub App. */
export function openGitHubApp(app: AppCredentials, { records, log }: Surroundings): GitHubApp {
  const loop = startReportLoop({ records, installations: new Installations(app), log });
  return { close: async () => loop.stop() };
}
