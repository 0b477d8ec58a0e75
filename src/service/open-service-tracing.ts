import type { ServerContext } from "../server/http/server-context.ts";
import type { Tracing } from "../tracing/open-tracing.ts";
import type { Settings } from "./settings/settings.ts";

/** Undefined where the settings name no collector: OpenTelemetry's packages are not loaded. */
export async function openServiceTracing(
  settings: Settings,
  { about, records, now, log }: Pick<ServerContext, "about" | "records" | "now" | "log">,
): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url } = settings;
  if (base === undefined && url === undefined) return undefined;
  const { createExporter, createSampler, openTracing } = await import("../tracing/open-tracing.ts");
  const exporter = await createExporter(settings.OTEL_EXPORTER_OTLP_PROTOCOL, log);
  const { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio } = settings;
  const version = about.versions["service"];
  return openTracing(exporter, createSampler(name, ratio), { records, now, log, version });
}
