import { Agent, request } from "undici";
import { z } from "zod";
import { apiVersion } from "../../src/contract/custom-resources/api-group.ts";
import type { Cluster } from "../support/cluster/cluster.ts";

/** Fields that the API server refuses, with its messages; empty where it accepts the object. */
export type Complaints = readonly { readonly field: string; readonly message: string }[];

const answer = z.object({
  kind: z.string(),
  message: z.string().default(""),
  details: z
    .object({
      causes: z.array(z.object({ field: z.string().default(""), message: z.string() })).default([]),
    })
    .optional(),
});

const unknownField = /unknown field "([^"]+)"/g;

/** Submits resources as `kubectl create` does, in dry runs. */
export function dryRuns({ url, adminToken, certificateAuthority }: Cluster) {
  const dispatcher = new Agent({ connect: { ca: certificateAuthority }, connections: 4 });
  return {
    async create(kind: "CompressionJob" | "Batch", spec: unknown): Promise<Complaints> {
      const plural = kind === "Batch" ? "batches" : "compressionjobs";
      const query = "dryRun=All&fieldValidation=Strict";
      const path = `/apis/${apiVersion}/namespaces/default/${plural}?${query}`;
      const { body } = await request(url + path, {
        method: "POST",
        dispatcher,
        headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
        body: JSON.stringify({ apiVersion, kind, metadata: { name: "tried" }, spec }),
      });
      const { kind: answered, message, details } = answer.parse(await body.json());
      if (answered !== "Status") return [];
      const unknown = Array.from(message.matchAll(unknownField), ([text, field = ""]) => ({
        field,
        message: text,
      }));
      const complaints = [...(details?.causes ?? []), ...unknown];
      return complaints.length > 0 ? complaints : [{ field: "", message }];
    },
    close: () => dispatcher.close(),
  };
}
