import { stringify } from "yaml";
import { z } from "zod";
import { apiGroup } from "../src/contract/custom-resources/api-group.ts";
import { batchResourceStatus, batchSpec } from "../src/contract/custom-resources/batch-resource.ts";
import { unseenConditions } from "../src/contract/custom-resources/condition.ts";
import {
  compressionJobSpec,
  compressionJobStatus,
} from "../src/contract/custom-resources/compression-job.ts";
import {
  mutableBatchFields,
  mutableJobFields,
} from "../src/contract/custom-resources/resource-controls.ts";
import {
  batchStatus,
  isTerminal,
  jobStatus,
  type JobStatus,
  transitionTable,
} from "../src/contract/jobs/status.ts";
import { structuralSchema, type Validation } from "./structural-schema.ts";

type Json = Readonly<Record<string, unknown>>;

interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
  readonly description: string;
  /** Columns above 0 are shown with `-o wide` alone. */
  readonly priority?: number;
}

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly shortName: string;
  readonly description: string;
  readonly maxNameLength: number;
  readonly spec: z.ZodObject;
  /** Of the spec, after its creation. */
  readonly mutableFields: readonly string[];
  readonly status: z.ZodObject;
  /** What the statuses may become. */
  readonly statusRule: Validation;
  readonly columns: readonly Column[];
  readonly selectableFields: readonly string[];
}

const age: Column = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Since when it exists.",
};

const kinds: readonly Kind[] = [
  {
    kind: "CompressionJob",
    plural: "compressionjobs",
    shortName: "cpj",
    description: "One model compressed for one target by one recipe.",
    maxNameLength: 253,
    spec: compressionJobSpec,
    mutableFields: mutableJobFields,
    status: compressionJobStatus,
    statusRule: {
      rule: `self == oldSelf || self in ${laterStatusTable()}[oldSelf]`,
      message: "a job goes back to Pending alone, and Completed, Failed and Cancelled are final",
    },
    columns: [
      {
        name: "Status",
        type: "string",
        jsonPath: ".status.status",
        description: "Where the job stands.",
      },
      {
        name: "Target",
        type: "string",
        jsonPath: ".spec.target",
        description: "What the model is made for.",
      },
      {
        name: "Progress",
        type: "string",
        jsonPath: ".status.report.progress",
        description: "Share that was done at the end.",
      },
      {
        name: "Ratio",
        type: "string",
        jsonPath: ".status.report.ratio",
        description: "Size relative to the original.",
      },
      age,
      {
        name: "Job",
        type: "string",
        jsonPath: ".status.jobId",
        description: "Id in the REST interface.",
        priority: 1,
      },
      {
        name: "Message",
        type: "string",
        jsonPath: ".status.statusMessage",
        description: "Why.",
        priority: 1,
      },
    ],
    selectableFields: [".spec.target", ".spec.kind", ".status.status"],
  },
  {
    kind: "Batch",
    plural: "batches",
    shortName: "cbatch",
    description:
      "Several models, each compressed for several targets; owns a CompressionJob for each pair.",
    // Its jobs are named after it, with a dash and four digits.
    maxNameLength: 248,
    spec: batchSpec,
    mutableFields: mutableBatchFields,
    status: batchResourceStatus,
    statusRule: {
      rule: `self == oldSelf || !(oldSelf in ${celList(batchStatus.options.filter(isTerminal))})`,
      message: "Completed, Failed and Cancelled are final",
    },
    columns: [
      {
        name: "Status",
        type: "string",
        jsonPath: ".status.status",
        description: "Where the batch stands.",
      },
      {
        name: "Finished",
        type: "string",
        jsonPath: ".status.finished",
        description: "Jobs that have ended, of all.",
      },
      {
        name: "Failed",
        type: "integer",
        jsonPath: ".status.counts.Failed",
        description: "Jobs that failed.",
      },
      age,
      {
        name: "Batch",
        type: "string",
        jsonPath: ".status.batchId",
        description: "Id in the REST interface.",
        priority: 1,
      },
      {
        name: "Message",
        type: "string",
        jsonPath: ".status.statusMessage",
        description: "Why.",
        priority: 1,
      },
    ],
    selectableFields: [".spec.kind", ".status.status"],
  },
];

/** The CustomResourceDefinitions as YAML, by path from the repository's root. */
export function resourceDefinitions(): ReadonlyMap<string, string> {
  return new Map(
    kinds.map((kind) => [
      `crds/${kind.plural}.yaml`,
      notice + stringify(resourceDefinition(kind), yamlStyle),
    ]),
  );
}

const notice = "# Generated by `npm run generate`; edit src/contract instead.\n";
const yamlStyle = { lineWidth: 0, aliasDuplicateObjects: false };

function resourceDefinition({
  kind,
  plural,
  shortName,
  columns,
  selectableFields,
  ...schemas
}: Kind): Json {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${apiGroup}` },
    spec: {
      group: apiGroup,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ["modeloptimization"],
      },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })),
          schema: { openAPIV3Schema: resourceSchema({ kind, ...schemas }) },
        },
      ],
    },
  };
}

function resourceSchema(
  resource: Omit<Kind, "plural" | "shortName" | "columns" | "selectableFields">,
): Json {
  const { description, maxNameLength, spec, mutableFields, status, statusRule } = resource;
  return {
    description,
    type: "object",
    required: ["spec"],
    properties: {
      apiVersion: { type: "string", description: "Group and version of the resource." },
      kind: { type: "string", description: "Kind of the resource." },
      metadata: {
        type: "object",
        properties: {
          name: {
            type: "string",
            maxLength: maxNameLength,
            description: "Name, unique within the namespace.",
          },
        },
      },
      spec: {
        description: `What is asked for. Apart from ${mutableFields.join(", ")} it cannot be changed.`,
        ...specSchema(structuralSchema(spec), resource),
      },
      status: {
        description: "What became of it.",
        ...statusSchema(structuralSchema(status), statusRule),
      },
    },
  };
}

/**
 * Rules are at the fields that they are about, as far as they can be: one at the spec costs the API server a copy of the spec for
 * every field that it names, at each write of the resource or its status.
 */
function specSchema(
  schema: Json,
  { kind, mutableFields }: Pick<Kind, "kind" | "mutableFields">,
): Json {
  const message = `cannot be changed: only ${mutableFields.join(", ")} can; make a new ${kind}`;
  const fields = Object.entries(properties.parse(schema["properties"]));
  const required = z.array(z.string()).default([]).parse(schema["required"]);
  const mayAppear = ([name, { default: value }]: (typeof fields)[number]) =>
    !mutableFields.includes(name) && !required.includes(name) && value === undefined;
  const fieldRules = (name: string): Validation[] => {
    if (name === "cancel") return [{ rule: "self || !oldSelf", message: "cannot be taken back" }];
    return mutableFields.includes(name) ? [] : [{ rule: "self == oldSelf", message }];
  };
  const sameFields = fields.filter(mayAppear).map(([name]) => ({
    rule: `has(self.${name}) == has(oldSelf.${name})`,
    message,
    fieldPath: `.${name}`,
  }));
  return {
    ...withValidations(schema, sameFields),
    properties: Object.fromEntries(
      fields.map(([name, field]) => [name, withValidations(field, fieldRules(name))]),
    ),
  };
}

/** A resource that nobody has written a status for reads as Pending. */
function statusSchema(schema: Json, rule: Validation): Json {
  const { status, ...others } = properties.parse(schema["properties"]);
  return {
    ...schema,
    default: { status: "Pending", conditions: [...unseenConditions] },
    properties: { status: withValidations({ ...status, default: "Pending" }, [rule]), ...others },
  };
}

const properties = z.record(z.string(), z.record(z.string(), z.unknown()));
const validations = z.array(z.record(z.string(), z.string())).default([]);

function withValidations(schema: Json, added: readonly Validation[]): Json {
  if (added.length === 0) return schema;
  return {
    ...schema,
    "x-kubernetes-validations": [
      ...validations.parse(schema["x-kubernetes-validations"]),
      ...added,
    ],
  };
}

/** For each status of a job those it may have later, whatever its kind: one write can report several transitions. */
function laterStatusTable(): string {
  return `{${jobStatus.options.map((status) => `'${status}': ${celList(laterStatuses(status))}`).join(", ")}}`;
}

function laterStatuses(from: JobStatus): JobStatus[] {
  const later = new Set<JobStatus>();
  const visit = (status: JobStatus) => {
    for (const next of Object.values(transitionTable).flatMap((table) => table[status])) {
      if (later.has(next)) continue;
      later.add(next);
      if (next !== "Pending") visit(next);
    }
  };
  visit(from);
  return jobStatus.options.filter((status) => later.has(status));
}

function celList(values: readonly string[]): string {
  return `[${values.map((value) => `'${value}'`).join(", ")}]`;
}
