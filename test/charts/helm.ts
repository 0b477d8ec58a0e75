import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { programPath } from "../support/cluster/programs.ts";

const exec = promisify(execFile);
export const chartFolder = join(import.meta.dirname, "../../charts/model-optimization");

/**
 * The output of Helm, whose files do not go to the user's home.
 * @throws Error with the standard error
 */
export async function helm(args: readonly string[], kubeconfig = "/nonexistent"): Promise<string> {
  const home = join(tmpdir(), "helm-of-tests");
  const env = {
    PATH: process.env["PATH"],
    HOME: home,
    KUBECONFIG: kubeconfig,
    HELM_CACHE_HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_DATA_HOME: home,
  };
  const { stdout } = await exec(await programPath("helm"), [...args], {
    env,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** What the API server is given of a rendered object. */
const manifest = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
});
export type Manifest = z.infer<typeof manifest>;

export interface Release {
  readonly name?: string;
  readonly namespace?: string;
  /** Values in YAML or JSON. */
  readonly values?: unknown;
}

/** The objects of a release, rendered by the chart from the values. */
export async function render({
  name = "mos",
  namespace = "default",
  values = {},
}: Release = {}): Promise<Manifest[]> {
  const text = await helm([
    "template",
    name,
    chartFolder,
    `--namespace=${namespace}`,
    ...valueFlags(values),
  ]);
  return parseAllDocuments(text).flatMap((document) => {
    const content: unknown = document.toJS();
    return content === null ? [] : [manifest.parse(content)];
  });
}

/** Flags that set the values, by fields of the top level. */
export function valueFlags(values: unknown): string[] {
  return Object.entries(z.record(z.string(), z.unknown()).parse(values)).map(
    ([field, value]) => `--set-json=${field}=${JSON.stringify(value)}`,
  );
}
