import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { ServiceStatus } from "../contract/service-status.ts";
import type { Settings } from "./settings/settings.ts";

const manifestFile = path.join(import.meta.dirname, "../../package.json");
const manifest = z.object({
  version: z.string(),
  dependencies: z.object({ "onnxruntime-node": z.string() }),
});

/** What does not change of the service while it runs. */
export async function describeService(
  { MOS_DATABASE_URL: database }: Settings,
  now: Date,
): Promise<Pick<ServiceStatus, "startedAt" | "versions" | "records">> {
  const { version, dependencies } = manifest.parse(
    JSON.parse(await readFile(manifestFile, "utf8")),
  );
  return {
    startedAt: now.toISOString(),
    versions: {
      service: version,
      "Node.js": process.versions.node,
      "ONNX Runtime": dependencies["onnxruntime-node"],
    },
    records: database === undefined ? "sqlite" : "postgres",
  };
}
