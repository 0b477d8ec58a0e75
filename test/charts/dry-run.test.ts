import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { z } from "zod";
import { chartValues } from "../../scripts/chart-values.ts";
import { clusterMissing, goMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { alternatives, everything } from "./chart-options.ts";
import { type Manifest, render } from "./helm.ts";

const run = promisify(execFile);
const skip = clusterMissing || helmMissing || goMissing;

/** Definitions of others that the chart has resources of, by Go module and file. */
const definitions = [
  {
    module: "github.com/cert-manager/cert-manager@v1.21.2",
    files: ["deploy/crds/cert-manager.io_certificates.yaml"],
  },
  {
    module: "sigs.k8s.io/gateway-api@v1.5.0",
    files: ["config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"],
  },
  {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    files: ["podmonitors", "prometheusrules"].map(
      (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
    ),
  },
];

const rows = { "every option": everything, ...alternatives };

test("an API server takes what the chart makes of every option", { skip }, async (t) => {
  const { cluster, namespace } = await createTestNamespace();
  const flags = ["--server-side", "-f"];
  for (const file of await downloadDefinitions()) await cluster.kubectl(["apply", ...flags, file]);
  await cluster.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  const dryRun = async (manifests: readonly Manifest[]) => {
    const strictly = ["--dry-run=server", "--validate=strict", "--force-conflicts"];
    const byNamespace = Map.groupBy(manifests, ({ metadata }) => metadata.namespace ?? namespace);
    for (const [place, items] of byNamespace) {
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      await cluster.kubectl(["apply", "-n", place, ...strictly, ...flags, "-"], list);
    }
  };
  for (const [name, values] of Object.entries(rows)) {
    await t.test(name, async () => dryRun(await render({ namespace, values })));
  }
  for (const file of ["move-job.yaml", "restore-job.yaml"]) {
    await t.test(file, async () => {
      const text = await readFile(join(import.meta.dirname, "../../docs", file), "utf8");
      const strictly = ["--dry-run=server", "--validate=strict"];
      await cluster.kubectl(["create", "-n", namespace, ...strictly, "-f", "-"], text);
    });
  }
});

test("every option is among those that an API server is asked about", () => {
  const given = new Set(Object.values(rows).flatMap((values) => listPaths(values)));
  const all = listPaths(chartValues.parse({}));
  assert.deepEqual(
    all.filter((path) => path !== "targets" && !given.has(path)),
    [],
  );
});

/** Paths of all values that are not objects, or have no fields. */
function listPaths(value: unknown, path = ""): string[] {
  const fields = z.record(z.string(), z.unknown()).safeParse(value);
  const entries = Object.entries(fields.data ?? {});
  if (entries.length === 0) return [path];
  const inner = entries.flatMap(([name, field]) =>
    listPaths(field, path === "" ? name : `${path}.${name}`),
  );
  return [path, ...inner].filter((each) => each !== "");
}

async function downloadDefinitions(): Promise<string[]> {
  const paths: string[] = [];
  for (const { module, files } of definitions) {
    const { stdout } = await run("go", ["mod", "download", "-json", module]);
    const { Dir: folder } = z.object({ Dir: z.string() }).parse(JSON.parse(stdout));
    paths.push(...files.map((file) => join(folder, file)));
  }
  return paths;
}
