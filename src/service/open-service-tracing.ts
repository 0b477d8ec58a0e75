import type { ServerContext } from "../server/http/server-context.ts";
import type { Tracing } from "../tracing/open-tracing.ts";
import { readCredentialFile } from "./settings/read-credentials.ts";
import type { Settings } from "./settings/settings.ts";

/**
 * Undefined where the settings name no collector: the packages of OpenTelemetry are not loaded.
 * @throws StartError
 */
export async function openServiceTracing(
  settings: Settings,
  { about, records, now, log }: Pick<ServerContext, "about" | "records" | "now" | "log">,
): Promise<Tracing | undefined> {
  const url = findUrl(settings);
  if (url === undefined) return undefined;
  const { OTEL_SERVICE_NAME: name, OTEL_RESOURCE_ATTRIBUTES: attributes } = settings;
  const file = settings.OTEL_EXPORTER_OTLP_CERTIFICATE;
  const { openTracing } = await import("../tracing/open-tracing.ts");
  const options = {
    url,
    protocol: settings.OTEL_EXPORTER_OTLP_PROTOCOL,
    headers: settings.OTEL_EXPORTER_OTLP_HEADERS,
    timeoutMs: settings.OTEL_EXPORTER_OTLP_TIMEOUT,
    certificates:
      file && (await readCredentialFile("collector's certificate", file, parseCertificates)),
    resourceAttributes: name === undefined ? attributes : { ...attributes, "service.name": name },
    sampler: settings.OTEL_TRACES_SAMPLER,
    ratio: settings.OTEL_TRACES_SAMPLER_ARG,
    maxSpans: settings.OTEL_BSP_MAX_QUEUE_SIZE,
    delayMs: settings.OTEL_BSP_SCHEDULE_DELAY,
  };
  return openTracing(options, { records, now, log, version: about.versions["service"] });
}

function findUrl({
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_ENDPOINT: base,
}: Settings): string | undefined {
  return url ?? (base && `${base.replace(/\/+$/, "")}/v1/traces`);
}

function parseCertificates(content: string): string {
  const isPem = content.includes("-----BEGIN CERTIFICATE-----");
  if (!isPem) throw new Error("It has no certificate in the form of PEM");
  return content;
}
