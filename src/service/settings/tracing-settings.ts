import { z } from "zod";
import { number, text } from "../../settings/parse-environment.ts";

const address = z.url({ protocol: /^https?$/ });

/** `key=value` pairs, separated by commas; values are percent-encoded. */
const pairs = z
  .string()
  .default("")
  .transform((list, context): Readonly<Record<string, string>> => {
    const entries = list.split(",").filter((pair) => pair.trim() !== "");
    const parsed = entries.map(parsePair);
    if (parsed.includes(undefined)) {
      context.addIssue("must be pairs such as key=value, separated by commas");
    }
    return Object.fromEntries(parsed.flatMap((pair) => (pair ? [pair] : [])));
  });

function parsePair(pair: string): [string, string] | undefined {
  const [, key, value] = /^\s*([^\s=]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
  if (key === undefined || value === undefined) return undefined;
  try {
    return [key, decodeURIComponent(value)];
  } catch {
    return undefined;
  }
}

/** Environment variables of traces, those that OpenTelemetry names. */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: address
    .optional()
    .describe(
      "Address of an OpenTelemetry collector, to which traces are sent; without it none are made.",
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address
    .optional()
    .describe("The same for traces alone, with the path: `/v1/traces` is not added to it."),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .enum(["http/protobuf", "http/json"])
    .default("http/protobuf")
    .describe("Form of traces that are sent."),
  OTEL_EXPORTER_OTLP_HEADERS: pairs.describe(
    "Headers for the collector, such as `api-key=SECRET`, separated by commas.",
  ),
  OTEL_EXPORTER_OTLP_CERTIFICATE: text
    .optional()
    .describe("PEM file of the authority that signs the collector's certificate."),
  OTEL_EXPORTER_OTLP_TIMEOUT: number
    .pipe(z.int().min(1).max(600_000))
    .default(10_000)
    .describe("Time for sending spans, with all retries, milliseconds."),
  OTEL_SERVICE_NAME: text.optional().describe("Name of the service in its traces."),
  OTEL_RESOURCE_ATTRIBUTES: pairs.describe(
    "Attributes of the service in its traces, such as `deployment.environment.name=production`.",
  ),
  OTEL_TRACES_SAMPLER: z
    .enum([
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ])
    .default("parentbased_always_on")
    .describe(
      [
        "Which traces are made; with `parentbased_…` the caller's `traceparent` decides, where there",
        "is one.",
      ].join(" "),
    ),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^\d*\.?\d+(e-\d+)?$/, { error: "must be a number" })
    .transform(Number)
    .pipe(z.number().max(1))
    .default(1)
    .describe("Share of the traces that `…traceidratio` makes, 0 to 1."),
  OTEL_BSP_SCHEDULE_DELAY: number
    .pipe(z.int().max(600_000))
    .default(5_000)
    .describe("Longest time for which a span waits for others, milliseconds."),
  OTEL_BSP_MAX_QUEUE_SIZE: number
    .pipe(z.int().min(1).max(1_000_000))
    .default(2_048)
    .describe("Spans that may wait for the collector; more are dropped and counted."),
};
