import { z } from "zod";
import { chartValues } from "./chart-values.ts";

interface ValueRow {
  readonly path: string;
  readonly meaning: string;
  /** JSON; undefined for a value that has none. */
  readonly preset: string | undefined;
}

const valueSchema = z.object({
  description: z.string().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});

/** Longer defaults are only in values.yaml. */
const maxPresetLength = 60;

/** The chart's README: how it is used, and every value with its meaning and default. */
export function chartReadme(schema: unknown): string {
  const rows = listValues(schema, chartValues.parse({}), "").map(formatRow);
  return [introduction, "| value | default | meaning |", "| --- | --- | --- |", ...rows, ""].join(
    "\n",
  );
}

const introduction = `# model-optimization

A Helm chart of the Model Optimization Service: the REST service, the operator of CompressionJobs and Batches, and what they
need in a namespace. [In a Kubernetes cluster](../../docs/kubernetes.md) says how it is installed, upgraded and uninstalled.

\`\`\`sh
helm install model-optimization charts/model-optimization --namespace models --create-namespace --values my-values.yaml
helm test model-optimization --namespace models
\`\`\`

A value that is not in this table is refused, and so is one of another form.

## Values
`;

function listValues(schema: unknown, preset: unknown, path: string): ValueRow[] {
  const { description = "", properties } = valueSchema.parse(schema);
  const own = path === "" ? [] : [{ path, meaning: description, preset: presetText(preset) }];
  if (properties === undefined) return own;
  const fields = z.record(z.string(), z.unknown()).catch({}).parse(preset);
  const inner = Object.entries(properties).flatMap(([name, property]) =>
    listValues(property, fields[name], path === "" ? name : `${path}.${name}`),
  );
  const title = own.map((row) => ({ ...row, preset: undefined }));
  return description === "" ? inner : [...title, ...inner];
}

function presetText(preset: unknown): string | undefined {
  if (preset === undefined) return undefined;
  const text = JSON.stringify(preset);
  return text.length <= maxPresetLength ? text : "see values.yaml";
}

function formatRow({ path, meaning, preset }: ValueRow): string {
  const shown = preset === undefined ? "" : `\`${preset}\``;
  return `| \`${path}\` | ${shown} | ${meaning.replaceAll("|", "\\|")} |`;
}
