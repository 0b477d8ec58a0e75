import { stringify } from "yaml";
import { apiVersion } from "../../contract/custom-resources/api-group.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { jobTitle } from "../../report/report.ts";

/** A job's request, as `POST /compress` and `POST /quantize` take it. */
function jobRequestBody(job: Job) {
  const { source, sha256, name } = job.model;
  const isNamed = job.name !== jobTitle({ model: name, target: job.target });
  return {
    name: isNamed ? job.name : undefined,
    model: { source, sha256, name },
    target: job.target,
    recipe: job.recipe,
    gates: hasFields(job.gateLimits) ? job.gateLimits : undefined,
    dryRun: job.dryRun ? true : undefined,
    deadlineSeconds: job.deadlineSeconds,
    labels: hasFields(job.labels) ? job.labels : undefined,
  };
}

function hasFields(document: object): boolean {
  return Object.keys(document).length > 0;
}

/** The same job as a command. */
export function jobAsCurl(job: Job, interfaceUrl: string): string {
  const body = JSON.stringify(jobRequestBody(job), undefined, 2).replaceAll("'", String.raw`'\''`);
  return [
    `curl --fail-with-body ${interfaceUrl}/${job.kind} \\`,
    `  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\`,
    `  -d '${body}'`,
  ].join("\n");
}

/** The same job as a resource, for `kubectl create -f`: `apply` takes no generated names. */
export function jobAsResource(job: Job): string {
  const resource = {
    apiVersion,
    kind: "CompressionJob",
    metadata: { generateName: `${job.target}-` },
    spec: { kind: job.kind, ...jobRequestBody(job) },
  };
  return formatYaml(resource);
}

/** The same job as a step of a workflow, whose repository has the model's file. */
export function jobAsStep(job: Job, serviceUrl: string): string {
  return formatYaml([
    {
      uses: "modeloptimization/compress@v1",
      with: {
        "service-url": serviceUrl,
        token: "${{ secrets.MOS_TOKEN }}",
        models: `models/${job.model.name}.onnx`,
        targets: job.target,
        kind: job.kind === "compress" ? undefined : job.kind,
        recipe: formatYaml(job.recipe),
        gates: hasFields(job.gateLimits) ? formatYaml(job.gateLimits) : undefined,
        "dry-run": job.dryRun ? "true" : undefined,
      },
    },
  ]);
}

/** Fields that are undefined are left out; texts that YAML 1.1 takes for something else are quoted. */
function formatYaml(document: unknown): string {
  return stringify(document, { version: "1.1", lineWidth: 0 });
}
