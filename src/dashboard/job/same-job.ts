import { apiVersion } from "../../contract/custom-resources/api-group.ts";
import type { Job } from "../../contract/jobs/job.ts";

/** A job's request, as `POST /compress` and `POST /quantize` take it. */
function jobRequestBody(job: Job) {
  const { source, sha256, name } = job.model;
  return {
    model: { source, sha256, name },
    target: job.target,
    recipe: job.recipe,
    gates: Object.keys(job.gateLimits).length === 0 ? undefined : job.gateLimits,
    dryRun: job.dryRun ? true : undefined,
    deadlineSeconds: job.deadlineSeconds,
    labels: Object.keys(job.labels).length === 0 ? undefined : job.labels,
  };
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
        recipe: formatYaml(job.recipe),
        gates: formatYaml(job.gateLimits) || undefined,
        "dry-run": job.dryRun ? "true" : undefined,
      },
    },
  ]);
}

const plainText = /^[A-Za-z][\w ./-]*$/;
const reservedText = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** A document as YAML; fields that are undefined are left out. */
function formatYaml(value: unknown, indent = ""): string {
  if (Array.isArray(value)) {
    const items = value.map((each) => `${indent}- ${formatYaml(each, `${indent}  `).trimStart()}`);
    return items.join("");
  }
  if (typeof value !== "object" || value === null)
    return `${indent}${formatScalar(value, indent)}\n`;
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return fields.map(([name, each]) => formatField(name, each, indent)).join("");
}

function formatField(name: string, value: unknown, indent: string): string {
  const isNested = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (isNested) return `${indent}${name}:\n${formatYaml(value, `${indent}  `)}`;
  return `${indent}${name}: ${formatScalar(value, indent)}\n`;
}

function formatScalar(value: unknown, indent: string): string {
  if (typeof value !== "string") return JSON.stringify(value);
  if (value.endsWith("\n")) {
    return `|\n${value.trimEnd().replaceAll(/^/gm, `${indent}  `)}`;
  }
  return plainText.test(value) && !reservedText.test(value) ? value : JSON.stringify(value);
}

/** Fields with their values as texts; those of objects behind their names. */
export function flattenFields(fields: object, prefix = ""): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]: [string, unknown]) => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isNested) return flattenFields(value, `${prefix}${name}.`);
    const text = Array.isArray(value) ? value.join(", ") || "none" : String(value);
    return [[`${prefix}${name}`, text]];
  });
}
