import { z } from "zod";

/** One reason of a 422. */
export interface FieldError {
  readonly resource: string;
  readonly field: string;
  readonly code: string;
  readonly message: string;
}

const annotation = z.looseObject({
  path: z.string(),
  start_line: z.number(),
  end_line: z.number(),
  start_column: z.number().optional(),
  end_column: z.number().optional(),
  message: z.string(),
  title: z.string().optional(),
  raw_details: z.string().optional(),
  annotation_level: z.string(),
});

/** Fields of a check run that a request sets. */
export const checkRunFields = z.looseObject({
  name: z.string().optional(),
  head_sha: z.string().optional(),
  details_url: z.string().optional(),
  external_id: z.string().optional(),
  status: z.enum(["queued", "in_progress", "completed"]).optional(),
  conclusion: z
    .enum([
      "success",
      "failure",
      "neutral",
      "cancelled",
      "skipped",
      "timed_out",
      "action_required",
      "stale",
    ])
    .optional(),
  started_at: z.string().optional(),
  completed_at: z.string().optional(),
  output: z
    .looseObject({
      title: z.string().optional(),
      summary: z.string(),
      text: z.string().optional(),
      annotations: z.array(annotation).default([]),
    })
    .optional(),
});
export type CheckRunFields = z.output<typeof checkRunFields>;
export type Annotation = z.output<typeof annotation>;

export const commentFields = z.looseObject({ body: z.string() });

const maxOutputBytes = 65_535;
const maxCommentCharacters = 65_536;
const maxAnnotationBytes = 65_536;
const maxAnnotationTitle = 255;
const maxNameBytes = 255;

interface FieldRule {
  readonly field: string;
  readonly isBroken: (fields: CheckRunFields) => boolean;
  readonly message: string;
}

/** What GitHub refuses of a check run beyond its OpenAPI document. Lengths are in bytes, where that says characters. */
const checkRunRules: readonly FieldRule[] = [
  { field: "name", isBroken: ({ name }) => name === "", message: "is empty" },
  {
    field: "name",
    isBroken: ({ name }) => countBytes(name) > maxNameBytes,
    message: `is longer than ${maxNameBytes} bytes`,
  },
  {
    field: "head_sha",
    isBroken: ({ head_sha: sha }) => sha !== undefined && !/^[0-9a-f]{40}$/.test(sha),
    message: "No commit found for SHA",
  },
  {
    field: "conclusion",
    isBroken: ({ conclusion }) => conclusion === "stale",
    message: "only GitHub can set stale",
  },
  {
    field: "conclusion",
    isBroken: ({ status, conclusion }) => status === "completed" && conclusion === undefined,
    message: "is missing for a completed check run",
  },
  {
    field: "status",
    isBroken: ({ status = "completed", conclusion }) =>
      conclusion !== undefined && status !== "completed",
    message: "is not completed, with a conclusion",
  },
  ...(["summary", "text"] as const).map((field) => ({
    field: `output.${field}`,
    isBroken: ({ output }: CheckRunFields) => countBytes(output?.[field]) > maxOutputBytes,
    message: `exceeds a maximum bytesize of ${maxOutputBytes}`,
  })),
];

/** Why GitHub refuses a check run. */
export function checkRunErrors(fields: CheckRunFields): FieldError[] {
  const broken = checkRunRules.filter(({ isBroken }) => isBroken(fields));
  const annotations = (fields.output?.annotations ?? []).flatMap((one, index) =>
    annotationComplaints(one).map((message) => ({
      field: `output.annotations[${index}]`,
      message,
    })),
  );
  return [...broken, ...annotations].map(({ field, message }) => ({
    resource: "CheckRun",
    field,
    code: "invalid",
    message,
  }));
}

function annotationComplaints(annotation: Annotation): string[] {
  const {
    path,
    start_line: start,
    end_line: end,
    title,
    message,
    raw_details: details,
  } = annotation;
  const complaints: string[] = [];
  if (path === "" || path.startsWith("/") || path.startsWith("./"))
    complaints.push("path is not relative to the repository");
  if (start < 1 || end < start) complaints.push("lines are not in order, counted from 1");
  if (
    start !== end &&
    (annotation.start_column !== undefined || annotation.end_column !== undefined)
  )
    complaints.push("columns span several lines");
  if ((title?.length ?? 0) > maxAnnotationTitle) complaints.push("title is too long");
  if (message === "") complaints.push("message is empty");
  if (countBytes(message) > maxAnnotationBytes || countBytes(details) > maxAnnotationBytes)
    complaints.push("message is too long");
  return complaints;
}

/** What GitHub refuses of a comment beyond its OpenAPI document. */
export function commentErrors(body: string): FieldError[] {
  const refused = (code: string, message: string) => [
    { resource: "IssueComment", field: "body", code, message },
  ];
  if (body.trim() === "") return refused("missing_field", "body is empty");
  if (body.length > maxCommentCharacters)
    return refused(
      "unprocessable",
      `body is too long (maximum is ${maxCommentCharacters} characters)`,
    );
  return [];
}

function countBytes(text: string | undefined): number {
  return Buffer.byteLength(text ?? "");
}
