import { Agent, request } from "undici";
import { z } from "zod";
import { apiVersion } from "../../src/contract/api-group.ts";
import type { Cluster } from "../support/cluster/cluster.ts";

/** What the API server finds wrong with an object: fields with what it says of them. Empty where it takes the object. */
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

/** Has the API server look at resources as `kubectl create` would send them, and keep none of them. */
export function dryRuns({ url, adminToken, certificateAuthority }: Cluster) {
  const dispatcher = new Agent({ connect: { ca: certificateAuthority }, connections: 4 });
  return {
    async create(kind: "CompressionJob" | "Batch", spec: unknown): Promise<Complaints> {
      const plural = kind === "Batch" ? "batches" : "compressionjobs";
      const path = `/apis/${apiVersion}/namespaces/default/${plural}?dryRun=All&fieldValidation=Strict`;
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
