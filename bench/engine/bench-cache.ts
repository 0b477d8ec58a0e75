import { homedir } from "node:os";
import { join } from "node:path";

/** Folder of models and packages that benchmarks keep from run to run. */
export const benchCache = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "model-optimization-service",
  "bench",
);
