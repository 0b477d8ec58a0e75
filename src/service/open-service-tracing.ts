import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import type { ServerContext } from "../server/http/server-context.ts";
import type { Tracing } from "../tracing/open-tracing.ts";
import type { Settings } from "./settings/settings.ts";

interface TracedParts extends Pick<ServerContext, "about"> {
  readonly records: Records;
  readonly now: () => Date;
  readonly log: Log;
}

/** Undefined where the settings name no collector: OpenTelemetry's packages are not loaded. */
export async function openServiceTracing(
  settings: Settings,
  { about, ...parts }: TracedParts,
): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url } = settings;
  if (base === undefined && url === undefined) return undefined;
  const { createExporter, createSampler, openTracing } = await import("../tracing/open-tracing.ts");
  const exporter = await createExporter(settings.OTEL_EXPORTER_OTLP_PROTOCOL, parts.log);
  const { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio } = settings;
  const version = about.versions["service"];
  return openTracing(exporter, createSampler(name, ratio), { ...parts, version });
}
