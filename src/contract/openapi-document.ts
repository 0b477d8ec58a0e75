import type { z } from "zod";
import { convertSchemas, type Json, mergeSharedSchemas } from "./convert-schemas.ts";
import { describeOperation } from "./describe-operation.ts";
import { problem } from "./errors.ts";
import { logEnd, logLine } from "./log.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";
import { scopeTable } from "./token.ts";

type RouteEntries = readonly (readonly [string, Route])[];

/**
 * This interface as an OpenAPI 3.1 document, paths relative to the base URL. Fields that are
 * undefined are absent in its JSON.
 */
export function openApiDocument(): Json {
  const entries = Object.entries<Route>(routes);
  const inputs = convertSchemas("input", bodySchemas(entries));
  const common = { Problem: problem, LogLine: logLine, LogEnd: logEnd };
  const outputs = convertSchemas("output", { ...replySchemas(entries), ...common });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of entries) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = describeOperation(name, route, { inputs, outputs });
  }
  const schemas = {
    ...mergeSharedSchemas(inputs.shared, outputs.shared),
    LogEnd: outputs.schemas["LogEnd"],
  };
  return { ...documentHead, paths, components: { schemas, securitySchemes: { token: bearer } } };
}

const documentHead = {
  openapi: "3.1.1",
  info: {
    title: "Model Optimization Service",
    version: "1",
    description: "Shards, quantizes and measures ONNX models as jobs.",
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  },
  servers: [{ url: "/v1" }],
  security: [{ token: [] }],
};

const scopeTexts = Object.entries(scopeTable).map(([scope, allows]) => `\`${scope}\`: ${allows}`);

const bearer = {
  type: "http",
  scheme: "bearer",
  description: `Scopes: ${scopeTexts.join(" ")}`,
};

function bodySchemas(entries: RouteEntries): Record<string, z.ZodType> {
  return Object.fromEntries(
    entries.flatMap(([name, { body }]) => (body === undefined ? [] : [[name, body]])),
  );
}

function replySchemas(entries: RouteEntries): Record<string, z.ZodType> {
  return Object.fromEntries(
    entries.flatMap(([name, { replies }]) =>
      Object.entries(replies).flatMap(([status, reply]) =>
        "json" in reply ? [[`${name} ${status}`, reply.json]] : [],
      ),
    ),
  );
}
