import { z } from "zod";

const address = z.url({ protocol: /^https?$/ }).optional();

/**
 * Environment variables of OpenTelemetry that the service reads itself. Those of the exporter and
 * of the resource are read by OpenTelemetry's own packages.
 */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: address.describe(
    "Address of an OpenTelemetry collector, to which traces are sent; without it none are made.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address.describe(
    "The same for traces only, with the path: `/v1/traces` is not added to it.",
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .enum(["http/protobuf", "http/json"])
    .default("http/protobuf")
    .describe("Form of traces that are sent."),
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
};
